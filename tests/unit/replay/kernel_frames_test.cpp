// The kernel's frames: K: nodes under the frame that entered them.
#include <doctest/doctest.h>

#include <csignal>

#include "reader/replay/thread_stack.hpp"
#include "tests/support/kernel_script.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

constexpr uint32_t kRead = 0, kExitGroup = 231;

// A thread with its own records in a process, and the kernel's records about it.
struct KernelThread : KernelScript {
  ThreadIndex thread = script.thread(process, 100);

  // The tree, the time off the CPU in K: frames, and lost exits.
  std::string result(ReplayFilter filter = {}) {
    ReplayOptions options;
    options.filter = std::move(filter);
    Replay replay(script.definitions, nullptr, options);
    script.replay(replay);
    const ThreadTree& tree = replay.threads()[0];
    CHECK(replay.tree()[tree.root].total_ns ==
          static_cast<uint64_t>(tree.stop_ns - tree.start_ns));
    CHECK(replay.findings().empty());
    std::string text = tree_text(replay, tree.root);
    if (replay.totals().exit_lost != 0) {
      text += " lost=" + std::to_string(replay.totals().exit_lost);
    }
    if (replay.totals().open != 0) {
      text += " open=" + std::to_string(replay.totals().open);
    }
    return text;
  }
};

}  // namespace

TEST_CASE("a system call is a frame of the one that makes it") {
  KernelThread t;
  t.script.enter(t.thread, 1000, "f");
  t.syscall(100, 1100, kRead);
  t.leaves(100, 1200, false);
  t.comes(100, 1900);
  t.syscall_end(100, 2000);
  t.syscall(100, 2100, kRead);
  t.syscall_end(100, 2150);
  t.script.exit(t.thread, 2200);
  CHECK(t.result() == "f 1:250[K:read 2:950]");

  Replay replay(t.script.definitions, nullptr);
  t.script.replay(replay);
  const CallTree& tree = replay.tree();
  const NodeIndex f = tree[replay.threads()[0].root].first_child;
  const NodeIndex read = tree[f].first_child;
  CHECK(tree.cpu_total(read).off_ns == 700);
  CHECK(tree.cpu_self(f).off_ns == 0);
  CHECK(replay.functions()[tree[read].function].module == kKernelModule);
}

TEST_CASE("a stretch that passed in the kernel has no part in a later loss") {
  KernelThread t;
  const ClockMap ticks({}, 1'000'000'000);
  t.script.enter(t.thread, 1000, "f");
  t.syscall(100, 1100, kRead);
  Record& after_gap = t.script.stack(t.thread, 1500, {"f"});
  after_gap.after_gap = true;
  after_gap.compact = true;
  t.script.add(t.thread, 2000, ARCTRACE_TYPE_LOST,
               lost_body(ARCTRACE_LOST_FULL, 1, 1800));
  t.script.stack(t.thread, 2000, {"f"});
  t.script.exit(t.thread, 2100);
  ReplayOptions options;
  options.ticks = &ticks;
  Replay replay(t.script.definitions, nullptr, options);
  t.script.replay(replay);
  CHECK(tree_text(replay, replay.threads()[0].root) ==
        "f 1:500[K:read 1:400 [lost] 1:200]");
}

TEST_CASE("faults and signals are counted where they come, and take no time") {
  KernelThread t;
  t.script.enter(t.thread, 1000, "f");
  t.page_fault(100, 1010);
  t.page_fault(100, 1020);
  t.syscall(100, 1100, kRead);
  t.page_fault(100, 1150);
  t.syscall_end(100, 1200);
  t.signal(100, 1200, 10);
  t.script.enter(t.thread, 1250, "handler");
  t.script.exit(t.thread, 1300);
  t.script.exit(t.thread, 1400);
  CHECK(t.result() ==
        "f 1:250[K:page fault 2:0 K:read 1:100[K:page fault 1:0] K:signal 10 1:0 "
        "handler 1:50]");
}

TEST_CASE("what passes after a signal that ends the process is no function's time") {
  KernelThread t;
  t.script.enter(t.thread, 1000, "f");
  t.syscall(100, 1100, kRead);
  SUBCASE("it ends") {
    t.signal(100, 1300, SIGSEGV, ARCTRACE_SIGNAL_DEFAULT);
    t.page_fault(100, 1350);
    t.add(100, 1400, ARCTRACE_TYPE_EXITED, Bytes().u32(0).u32(0));
    t.leaves(100, 1900, false);
    CHECK(t.result() ==
          "f 1:100[K:read 1:200 K:signal 11 1:0 [exit] 1:600[K:page fault 1:0]] lost=1 "
          "open=1");
  }
  SUBCASE("it has a handler, or what it has is not known") {
    arctrace_signal_action action = ARCTRACE_SIGNAL_UNKNOWN;
    SUBCASE("") { action = ARCTRACE_SIGNAL_HANDLED; }
    SUBCASE("") {}
    t.signal(100, 1300, SIGSEGV, action);
    t.leaves(100, 1900, false);
    CHECK(t.result() == "f 1:700[K:read 1:200 K:signal 11 1:0] lost=1 open=1");
  }
  SUBCASE("by default nothing happens") {
    t.signal(100, 1300, SIGCHLD, ARCTRACE_SIGNAL_DEFAULT);
    t.leaves(100, 1900, false);
    CHECK(t.result() == "f 1:700[K:read 1:200 K:signal 17 1:0] lost=1 open=1");
  }
  SUBCASE("the kernel spares it, as it writes") {
    t.signal(100, 1300, SIGTERM, ARCTRACE_SIGNAL_DEFAULT);
    t.script.enter(t.thread, 1400, "g");
    t.script.exit(t.thread, 1500);
    t.script.exit(t.thread, 1600);
    CHECK(t.result() ==
          "f 1:200[K:read 1:200 K:signal 15 1:0 [exit] 1:100 g 1:100] lost=1");
  }
  SUBCASE("the kernel spares it, as it calls the kernel") {
    t.signal(100, 1300, SIGTERM, ARCTRACE_SIGNAL_DEFAULT);
    t.syscall(100, 1400, kRead);
    t.syscall_end(100, 1500);
    t.script.exit(t.thread, 1600);
    CHECK(t.result() == "f 1:200[K:read 2:300 K:signal 15 1:0 [exit] 1:100] lost=1");
  }
  SUBCASE("the kernel spares it, of which a wait is known no end") {
    t.signal(100, 1300, SIGTERM, ARCTRACE_SIGNAL_DEFAULT);
    t.contention(100, 1350, 0xabc);
    t.syscall(100, 1400, kRead);
    t.syscall_end(100, 1500);
    t.script.exit(t.thread, 1600);
    CHECK(t.result() ==
          "f 1:200[K:read 2:300 K:signal 15 1:0 [exit] 1:50[K:contention 1:50]] lost=2");
  }
  SUBCASE("a vfork child gets it") {
    t.syscall_end(100, 1200);
    t.script.add(t.thread, 1250, ARCTRACE_TYPE_VFORK_BEGIN, Bytes());
    t.signal(100, 1300, SIGTERM, ARCTRACE_SIGNAL_DEFAULT);
    t.script.add(t.thread, 1400, ARCTRACE_TYPE_VFORK_END, Bytes());
    t.script.exit(t.thread, 1600);
    CHECK(t.result().find("[exit]") == std::string::npos);
  }
}

TEST_CASE("a wait for a lock is one frame however often its wait is recorded") {
  KernelThread t;
  t.script.enter(t.thread, 1000, "f");
  t.syscall(100, 1100, kRead);
  t.contention(100, 1200, 0xabc);
  t.contention(100, 1250, 0xabc);
  t.contention(100, 1300, 0xdef);
  t.contention_end(100, 1350, 0xdef);
  t.contention_end(100, 1400, 0xabc);
  t.contention_end(100, 1450, 0xabc);
  t.syscall_end(100, 1500);
  t.script.exit(t.thread, 1600);
  CHECK(t.result() == "f 1:200[K:read 1:200[K:contention 1:150[K:contention 1:50]]]");
}

TEST_CASE(
    "a thread that calls the kernel, gets a signal or writes a record has left the "
    "kernel") {
  SUBCASE("calls") {
    KernelThread t;
    t.script.enter(t.thread, 1000, "f");
    t.syscall(100, 1100, kRead);
    t.contention(100, 1200, 0xabc);
    t.syscall(100, 1300, 1);
    t.syscall_end(100, 1400);
    t.syscall_end(100, 1500);
    t.script.exit(t.thread, 1600);
    CHECK(t.result() == "f 1:300[K:read 1:100[K:contention 1:100] K:write 1:100] lost=2");
  }
  SUBCASE("signal") {
    KernelThread t;
    t.script.enter(t.thread, 1000, "f");
    t.syscall(100, 1100, kRead);
    t.signal(100, 1300, 11);
    t.script.exit(t.thread, 1600);
    CHECK(t.result() == "f 1:400[K:read 1:200 K:signal 11 1:0] lost=1");
  }
  SUBCASE("record") {
    KernelThread t;
    t.script.enter(t.thread, 1000, "f");
    t.syscall(100, 1100, kRead);
    t.script.enter(t.thread, 1300, "g");
    t.syscall_end(100, 1350);
    t.script.exit(t.thread, 1400);
    t.script.exit(t.thread, 1600);
    CHECK(t.result() == "f 1:300[K:read 1:200 g 1:100] lost=1");
  }
  SUBCASE("an end below a lost one") {
    KernelThread t;
    t.script.enter(t.thread, 1000, "f");
    t.syscall(100, 1100, kRead);
    t.contention(100, 1200, 0xabc);
    t.syscall_end(100, 1300);
    t.script.exit(t.thread, 1600);
    CHECK(t.result() == "f 1:400[K:read 1:100[K:contention 1:100]] lost=1");
  }
}

TEST_CASE(
    "a vfork child that borrows the stack takes it out of the kernel, losing nothing") {
  KernelThread t;
  t.script.enter(t.thread, 1000, "f");
  t.script.vfork_begin(t.thread, 1100);
  t.syscall(100, 1200, 58);
  t.leaves(100, 1250, false);
  t.script.enter(t.thread, 1300, "child");
  t.comes(100, 1500);
  t.syscall_end(100, 1550);
  t.script.vfork_end(t.thread, 1600, 101);
  t.script.exit(t.thread, 1700);
  CHECK(t.result().starts_with("f 1:300[K:vfork 1:100 child 1:300]"));
  CHECK(t.result().find("lost") == std::string::npos);
}

TEST_CASE("a thread that ends in the kernel stays there until it is gone") {
  KernelThread t;
  t.script.enter(t.thread, 1000, "f");
  t.syscall(100, 1100, kExitGroup);
  t.add(100, 1300, ARCTRACE_TYPE_EXITED, Bytes().u32(0).u32(0));
  t.syscall(100, 5000, kRead);  // another thread has its number by now
  CHECK(t.result() == "f 1:100[K:exit_group 1:200] open=2");
}

TEST_CASE("what fits no frame is nothing, and numbers without a name are shown") {
  KernelThread t;
  t.syscall(100, 900, kRead);  // before the thread's own first record
  t.script.enter(t.thread, 1000, "f");
  t.syscall_end(100, 1100);
  t.contention_end(100, 1200, 1);
  t.syscall(100, 1300, 999999);
  t.syscall_end(100, 1400);
  t.script.exit(t.thread, 1500);
  CHECK(t.result() == "f 1:400[K:syscall 999999 1:100]");
}

TEST_CASE("locks nest to a bound") {
  KernelThread t;
  t.script.enter(t.thread, 1000, "f");
  for (uint32_t i = 0; i < 100; ++i) t.contention(100, 1100, 0x1000 + i);
  t.script.exit(t.thread, 1200);
  CHECK(t.result().find("lost=16") != std::string::npos);
}

TEST_CASE("filters are for the kernel's frames too") {
  KernelThread t;
  t.script.enter(t.thread, 1000, "f");
  t.syscall(100, 1100, kRead);
  t.syscall_end(100, 1200);
  t.syscall(100, 1300, 1);
  t.syscall_end(100, 1500);
  t.script.exit(t.thread, 1600);
  ReplayFilter none;
  none.except = {"K:*"};
  CHECK(t.result(none) == "f 1:600");
  ReplayFilter long_ones;
  long_ones.min_duration_ns = 150;
  CHECK(t.result(long_ones) == "f 1:400[K:write 1:200]");
  ReplayFilter range;
  range.from_ns = 1150;
  range.until_ns = 1400;
  CHECK(t.result(range) == "f 1:100[K:read 1:50 K:write 1:100]");
}

TEST_CASE("another replay goes on in the kernel's frames, which are no new calls") {
  KernelThread t;
  t.script.stack(t.thread, 1000, {"f"});
  t.syscall(100, 1000, kRead);
  t.contention(100, 1000, 0x77);
  t.contention_end(100, 1300, 0x77);
  t.syscall_end(100, 1400);
  t.script.exit(t.thread, 1500);
  Replay replay(t.script.definitions, nullptr);
  for (size_t i = 0; i < t.script.records.size(); ++i) {
    Record record = t.script.records[i];
    if (i == 1 || i == 2) {
      record.thread = t.thread;
      replay.go_on_in_kernel(record);
    } else {
      replay.add(record);
    }
  }
  replay.finish();
  CHECK(tree_text(replay, replay.threads()[0].root) ==
        "f 1:100[K:read 0:100[K:contention 0:300]]");
  CHECK(replay.totals().exit_lost == 0);
}

TEST_CASE("system calls that are not recorded any more end when they were switched off") {
  for (const bool goes_on : {false, true}) {
    CAPTURE(goes_on);
    KernelThread t;
    const auto recorded = [&](int64_t time_ns, uint32_t events) {
      t.script.add(
          kNoIndex, time_ns, ARCTRACE_TYPE_ENABLED,
          Bytes().u32(ARCTRACE_GATE_ALL | events << ARCTRACE_KERNEL_EVENT_SHIFT).u32(0));
    };
    recorded(0, ARCTRACE_KERNEL_SYSCALLS);
    t.script.enter(t.thread, 1000, "f");
    t.syscall(100, 1100, kRead);
    recorded(1300, goes_on ? ARCTRACE_KERNEL_SYSCALLS | ARCTRACE_KERNEL_FAULTS : 0);
    t.syscall_end(100, 1400);  // its program had not stopped
    t.script.exit(t.thread, 2000);
    CHECK(t.result() ==
          (goes_on ? "f 1:700[K:read 1:300]" : "f 1:800[K:read 1:200] lost=1"));
  }
}
