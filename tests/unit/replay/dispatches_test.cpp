// Time off the CPU: what the kernel's records add to a thread's frames.
#include <doctest/doctest.h>

#include "reader/replay/kernel_records.hpp"
#include "tests/support/kernel_script.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

bool is(const CpuTime& off, uint64_t off_ns, uint64_t ready_ns, uint64_t switches) {
  CHECK(off.off_ns == off_ns);
  CHECK(off.ready_ns == ready_ns);
  CHECK(off.switches == switches);
  return off.off_ns == off_ns && off.ready_ns == ready_ns && off.switches == switches;
}

NodeIndex child_of(const Replay& replay, NodeIndex node) {
  return replay.tree()[node].first_child;
}

}  // namespace

TEST_CASE("sleeping and waiting for a CPU are distinguished, and charged to the frame") {
  KernelScript s;
  const ThreadIndex thread = s.script.thread(s.process, 100);
  s.script.enter(thread, 1000, "f");
  s.script.enter(thread, 1100, "g");
  s.leaves(100, 1200, false);
  s.woken(100, 1500);
  s.comes(100, 1550);
  s.script.exit(thread, 1600);  // g
  s.leaves(100, 1700, true);
  s.comes(100, 1730);
  s.script.exit(thread, 2000);
  Replay replay(s.script.definitions, nullptr);
  s.script.replay(replay);
  CHECK(replay.has_dispatches());
  REQUIRE(replay.threads().size() == 1);
  const NodeIndex f = child_of(replay, replay.threads()[0].root);
  const NodeIndex g = child_of(replay, f);
  CHECK(is(replay.tree().cpu_self(g), 350, 50, 1));
  CHECK(is(replay.tree().cpu_self(f), 30, 30, 1));
  CHECK(is(replay.tree().cpu_total(f), 380, 80, 2));
  CHECK(is(replay.tree().cpu_total(replay.threads()[0].root), 380, 80, 2));
}

TEST_CASE(
    "in place of a thread that waits for its vfork child, the child runs and waits") {
  KernelScript s;
  const ThreadIndex thread = s.script.thread(s.process, 100);
  s.script.enter(thread, 1000, "f");
  s.script.vfork_begin(thread, 1100);
  s.add(100, 1110, ARCTRACE_TYPE_FORKED, Bytes().u32(200).u32(200));
  s.leaves(100, 1120, false, 200);
  s.script.enter(thread, 1150, "child");
  s.leaves(200, 1200, false);
  s.woken(200, 1500);
  s.comes(200, 1520);
  s.script.exit(thread, 1600);  // child
  s.woken(100, 1700, 200);      // the child executes a program, or ends
  s.leaves(200, 1720, false);   // this is not the parent's time any more
  s.comes(100, 1800);
  s.script.vfork_end(thread, 1810, 200);
  s.leaves(200, 1900, false);
  s.script.exit(thread, 2000);
  Replay replay(s.script.definitions, nullptr);
  s.script.replay(replay);
  REQUIRE(replay.threads().size() == 1);
  const NodeIndex f = child_of(replay, replay.threads()[0].root);
  const NodeIndex child = child_of(replay, f);
  CHECK(is(replay.tree().cpu_self(child), 320, 20, 1));
  CHECK(is(replay.tree().cpu_self(f), 100, 100, 1));
}

TEST_CASE("perf's events show time off the CPU, and preemption, but no wake-ups") {
  KernelScript s;
  const ThreadIndex thread = s.script.thread(s.process, 100);
  const ThreadIndex other = s.script.thread(s.process, 101);
  s.script.enter(thread, 1000, "f");
  s.script.enter(other, 1000, "h");
  s.script.enter(thread, 1100, "g");
  s.leaves_by_perf(100, 1200, false);
  s.comes_by_perf(100, 1550);
  s.script.exit(thread, 1600);  // g
  s.leaves_by_perf(100, 1700, true);
  s.comes_by_perf(100, 1730);
  s.script.exit(thread, 2000);
  ReplayOptions options;
  options.has_wake_ups = false;
  Replay replay(s.script.definitions, nullptr, options);
  s.script.replay(replay);
  CHECK(replay.known_times() == KnownTimes::kOffCpu);
  REQUIRE(replay.threads().size() == 2);
  const NodeIndex f = child_of(replay, replay.threads()[0].root);
  const NodeIndex g = child_of(replay, f);
  CHECK(is(replay.tree().cpu_self(g), 350, 0, 1));
  CHECK(is(replay.tree().cpu_self(f), 30, 30, 1));
  CHECK(replay.tree().cpu_total(f).cpu_ns == 620);
  // The unknown thread that left or got the CPU has no row.
  CHECK(is(replay.tree().cpu_total(replay.threads()[1].root), 0, 0, 0));
}

TEST_CASE(
    "a thread's time begins with its first record and ends with the kernel's last") {
  KernelScript s;
  const ThreadIndex thread = s.script.thread(s.process, 100);
  s.leaves(100, 100, true);
  s.comes(100, 900);
  s.script.enter(thread, 1000, "f");
  s.leaves(100, 1100, false);
  // The record of getting a CPU is missing. The thread runs now, which says nothing of
  // the time before.
  s.script.exit(thread, 1300);
  s.leaves(100, 1400, false);
  s.comes(100, 1500);
  s.add(100, 1600, ARCTRACE_TYPE_EXITED, Bytes().u32(0).u32(0));
  s.leaves(100, 1700, false);  // while the kernel ends the thread
  s.comes(100, 1750);
  constexpr uint32_t kDead = 0x80;
  s.add(100, 1800, ARCTRACE_TYPE_SWITCH, Bytes().u32(kDead).u32(0).u32(100));
  s.comes(100, 1900);  // another thread has this number
  Replay replay(s.script.definitions, nullptr);
  s.script.replay(replay);
  const NodeIndex root = replay.threads()[0].root;
  CHECK(is(replay.tree().cpu_total(root), 350, 0, 4));
  CHECK(replay.tree()[root].total_ns == 800);
  CHECK(replay.tree().cpu_total(root).cpu_ns == 450);
}

TEST_CASE("what gave way is missing although the kernel's records come before the rest") {
  KernelScript s;
  const ThreadIndex thread = s.script.thread(s.process, 100);
  Process& process = *s.script.definitions.mutable_process(s.process);
  process.exec_ns = 0;
  process.main_ns = 30;
  s.script.definitions.mutable_thread(thread)->start_ns = 20;
  s.script.definitions.mutable_thread(thread)->overwritten_until_ns = 900;
  s.leaves(100, 700, true);
  s.comes(100, 800);
  Record& stack = s.script.stack(thread, 900, {"main"});
  stack.after_gap = stack.compact = true;
  s.script.exit(thread, 1000);
  ReplayOptions options;
  options.mode = ARCTRACE_MODE_OVERWRITE;
  Replay replay(s.script.definitions, nullptr, options);
  s.script.replay(replay);
  CHECK(tree_text(replay, replay.threads()[0].root) ==
        "[constructors] 1:0[[overwritten] 1:10] [loader] 1:20 [overwritten] 1:870 "
        "main 1:100");
}

TEST_CASE("base and cum are of the clock that is asked for") {
  KernelScript s;
  const ThreadIndex thread = s.script.thread(s.process, 100);
  s.script.enter(thread, 1000, "f");
  s.script.enter(thread, 1100, "g");
  s.leaves(100, 1200, false);
  s.comes(100, 1550);
  s.script.exit(thread, 1600);
  s.leaves(100, 1700, true);
  s.comes(100, 1730);
  s.script.exit(thread, 2000);
  const auto text = [&](ReportClock clock) {
    ReplayOptions options;
    options.clock = clock;
    Replay replay(s.script.definitions, nullptr, options);
    s.script.replay(replay);
    const NodeIndex root = replay.threads()[0].root;
    CHECK(replay.tree().cpu_total(root).cpu_ns == 620);
    CHECK(replay.tree().cpu_total(root).off_ns == 380);
    return tree_text(replay, root) + " of " +
           std::to_string(replay.tree()[root].total_ns);
  };
  CHECK(text(ReportClock::kWall) == "f 1:500[g 1:500] of 1000");
  CHECK(text(ReportClock::kCpu) == "f 1:470[g 1:150] of 620");
  CHECK(text(ReportClock::kOffCpu) == "f 1:30[g 1:350] of 380");
}

TEST_CASE("a time range cuts time off the CPU as it cuts all time") {
  KernelScript s;
  const ThreadIndex thread = s.script.thread(s.process, 100);
  s.script.enter(thread, 1000, "f");
  s.leaves(100, 1100, false);
  s.woken(100, 1300);
  s.comes(100, 1500);
  s.script.exit(thread, 1600);
  ReplayOptions options;
  options.filter.from_ns = 1200;
  options.filter.until_ns = 1400;
  Replay replay(s.script.definitions, nullptr, options);
  s.script.replay(replay);
  const NodeIndex root = replay.threads()[0].root;
  CHECK(replay.tree()[root].total_ns == 200);
  CHECK(is(replay.tree().cpu_total(root), 200, 100, 0));
}

TEST_CASE("of two threads with one number the later one is meant once it has begun") {
  KernelScript s;
  const ThreadIndex first = s.script.thread(s.process, 100);
  const ThreadIndex second = s.script.thread(s.process, 100);
  s.script.definitions.mutable_thread(second)->start_ns = 5000;
  s.script.enter(first, 1000, "f");
  s.leaves(100, 1100, false);
  s.comes(100, 1200);
  s.script.exit(first, 2000);
  s.script.enter(second, 6000, "f");
  s.leaves(100, 6100, false);
  s.comes(100, 6400);
  s.script.exit(second, 7000);
  Replay replay(s.script.definitions, nullptr);
  s.script.replay(replay);
  REQUIRE(replay.threads().size() == 2);
  CHECK(is(replay.tree().cpu_total(replay.threads()[0].root), 100, 0, 1));
  CHECK(is(replay.tree().cpu_total(replay.threads()[1].root), 300, 0, 1));
}

TEST_CASE("a call that is too short to be shown gives its time off the CPU away, too") {
  KernelScript s;
  const ThreadIndex thread = s.script.thread(s.process, 100);
  s.script.enter(thread, 1000, "f");
  s.script.enter(thread, 1100, "g");
  s.leaves(100, 1110, false);
  s.comes(100, 1150);
  s.script.exit(thread, 1200);
  s.script.exit(thread, 5000);
  ReplayOptions options;
  options.filter.min_duration_ns = 1000;
  Replay replay(s.script.definitions, nullptr, options);
  s.script.replay(replay);
  const NodeIndex f = child_of(replay, replay.threads()[0].root);
  CHECK(is(replay.tree().cpu_self(f), 40, 0, 1));
  CHECK(child_of(replay, f) == kNoNode);
}

TEST_CASE(
    "threads that only the kernel names are replayed on request, the idle one never") {
  KernelScript s;
  const ThreadIndex thread = s.script.thread(s.process, 100);
  s.script.enter(thread, 1000, "f");
  s.comes(200, 1100);
  s.syscall(200, 1150, 0);
  s.leaves(200, 1200, false);
  s.comes(200, 1700);
  s.script.exit(thread, 2000);
  Replay own(s.script.definitions, nullptr);
  s.script.replay(own);
  CHECK(own.threads().size() == 1);
  ReplayOptions options;
  options.all_threads = true;
  Replay all(s.script.definitions, nullptr, options);
  s.script.replay(all);
  REQUIRE(all.threads().size() == 2);
  CHECK(s.script.definitions.pid_of(all.threads()[1].thread) == 100);
  CHECK(tree_text(all, all.threads()[1].root) == "K:read 1:850");
  CHECK(is(all.tree().cpu_total(all.threads()[1].root), 500, 0, 1));
}

TEST_CASE("a thread of a recorded process is replayed though it has written nothing") {
  KernelScript s;
  const ThreadIndex thread = s.script.thread(s.process, 100);
  s.script.definitions.mutable_thread(s.task(200))->is_silent = true;
  s.script.enter(thread, 1000, "f");
  s.comes(200, 1100);
  s.leaves(200, 1200, false);
  s.comes(300, 1300);
  s.comes(200, 1700);
  s.script.exit(thread, 2000);
  Replay replay(s.script.definitions, nullptr);
  s.script.replay(replay);
  REQUIRE(replay.threads().size() == 2);
  CHECK(s.script.definitions.threads()[replay.threads()[1].thread].tid == 200);
  CHECK(is(replay.tree().cpu_total(replay.threads()[1].root), 500, 0, 1));
}

TEST_CASE(
    "a program that has written nothing goes on with the number of the one before") {
  KernelScript s;
  const ThreadIndex thread = s.script.thread(s.process, 100);
  const ThreadIndex silent = s.task(100);
  s.script.definitions.mutable_thread(silent)->is_silent = true;
  s.script.enter(thread, 1000, "execve");
  s.add(100, 1400, ARCTRACE_TYPE_EXECED, Bytes().fill(16, 0));
  s.leaves(100, 1500, false);
  s.comes(100, 1900);
  s.add(100, 2000, ARCTRACE_TYPE_EXITED, Bytes().u32(0).u32(0));
  Replay replay(s.script.definitions, nullptr);
  s.script.replay(replay);
  REQUIRE(replay.threads().size() == 2);
  CHECK(replay.threads()[0].thread == thread);
  CHECK(replay.tree()[replay.threads()[0].root].total_ns == 400);
  CHECK(replay.threads()[1].thread == silent);
  CHECK(replay.tree()[replay.threads()[1].root].total_ns == 600);
  CHECK(is(replay.tree().cpu_total(replay.threads()[1].root), 400, 0, 1));
}

TEST_CASE("a thread that joined as it ran is there, and runs once a record says so") {
  // The records are the kernel's about the thread, frames that another thread has found
  // for it, and its own.
  const auto root_of = [](bool has_kernel, bool has_frames, bool has_own) {
    KernelScript s;
    const ThreadIndex thread = s.script.thread(s.process, 100);
    s.script.definitions.mutable_process(s.process)->ran_before = true;
    s.script.definitions.mutable_thread(thread)->start_ns = 100;
    if (has_frames) s.script.opening_stack(thread, 100, {"main"});
    s.leaves(200, 150, true);
    if (has_kernel) s.leaves(100, 300, false);
    if (has_kernel && has_own) {
      s.woken(100, 900);
      s.comes(100, 950);
    }
    if (has_own && !has_frames) s.script.opening_stack(thread, 1000, {"main"});
    if (has_own) s.script.exit(thread, 1000);
    s.leaves(200, 1100, true);
    Replay replay(s.script.definitions, nullptr);
    s.script.replay(replay);
    REQUIRE(replay.threads().size() == 1);
    const NodeIndex root = replay.threads()[0].root;
    CHECK(replay.tree()[root].total_ns == 1000);
    return replay.tree().cpu_total(root);
  };
  const auto is_all = [](const CpuTime& time, uint64_t unknown_ns, uint64_t off_ns) {
    CHECK(time.unknown_ns == unknown_ns);
    CHECK(time.off_ns == off_ns);
    return time.cpu_ns == 1000 - unknown_ns - off_ns;
  };
  for (const bool has_frames : {false, true}) {
    CAPTURE(has_frames);
    CHECK(is_all(root_of(false, has_frames, false), 1000, 0));
    CHECK(is_all(root_of(true, has_frames, false), 200, 800));
    CHECK(is_all(root_of(true, has_frames, true), 200, 650));
    CHECK(is_all(root_of(false, has_frames, true), 900, 0));
  }
}

TEST_CASE(
    "a thread that waits all the time, as the recorder saw, is blocked since then") {
  for (const bool waits : {true, false}) {
    CAPTURE(waits);
    KernelScript s;
    const ThreadIndex thread = s.script.thread(s.process, 100);
    s.script.definitions.mutable_process(s.process)->ran_before = true;
    s.script.definitions.mutable_thread(thread)->start_ns = 100;
    if (waits) {
      s.script.waiting_stack(thread, 150, {"main", "poll"});
    } else {
      s.script.opening_stack(thread, 150, {"main", "poll"});
    }
    s.leaves(200, 160, true);
    s.kernel_gap(700, 800);
    s.leaves(200, 1100, true);
    Replay replay(s.script.definitions, nullptr);
    s.script.replay(replay);
    REQUIRE(replay.threads().size() == 1);
    const CpuTime& cpu = replay.tree().cpu_total(replay.threads()[0].root);
    CHECK(cpu.cpu_ns == 0);
    // It may have been woken in a gap of the kernel's records.
    CHECK(cpu.off_ns == (waits ? 550 : 0));
    CHECK(cpu.unknown_ns == (waits ? 450 : 1000));
  }
}

TEST_CASE("a created thread is ready until it has a CPU, and starts the tracer first") {
  for (const bool has_start : {true, false}) {
    KernelScript s;
    const ThreadIndex parent = s.script.thread(s.process, 100);
    const ThreadIndex child = s.script.thread(s.process, 101);
    Definitions& definitions = s.script.definitions;
    definitions.mutable_process(s.process)->pid = 100;
    definitions.mutable_thread(child)->start_ns = 1600;
    if (has_start) definitions.mutable_thread(child)->tracer_start = {1550, 1700};
    s.script.enter(parent, 1000, "f");
    s.add(100, 1100, ARCTRACE_TYPE_FORKED, Bytes().u32(101).u32(100));
    s.comes(101, 1500);
    s.script.enter(child, 1800, "g");
    s.script.exit(child, 2000);
    s.script.exit(parent, 2100);
    Replay replay(definitions, nullptr);
    s.script.replay(replay);
    REQUIRE(replay.threads().size() == 2);
    const ThreadTree& tree = replay.threads()[1];
    CHECK(tree.start_ns == 1100);
    const CpuTime& cpu = replay.tree().cpu_total(tree.root);
    CHECK(cpu.ready_ns == 400);
    CHECK(cpu.unknown_ns == 0);
    // The tracer's start is in no sum.
    CHECK(replay.tree()[tree.root].total_ns == 1000u - (has_start ? 150 : 0));
    CHECK((replay.functions().own_work() != kRootFunction) == has_start);
  }
}

TEST_CASE("a thread's states follow one another, with its waker and where") {
  struct States : ScheduleListener {
    const Replay* replay = nullptr;
    std::string text;
    void state_ended(const StateInfo& info) override {
      constexpr const char* kNames[] = {"runs", "ready", "blocked"};
      text += std::to_string(replay->definitions().threads()[info.thread].tid) + ' ' +
              kNames[static_cast<int>(info.state)] + ' ' + std::to_string(info.start_ns) +
              '-' + std::to_string(info.stop_ns);
      if (info.preempted) text += " preempted";
      if (info.waker.thread != kNoIndex) {
        text += " by " +
                std::to_string(replay->definitions().threads()[info.waker.thread].tid);
      }
      if (info.waker.node != kNoNode) text += " in " + name(info.waker.node);
      if (info.waker.interrupt) text += " interrupted";
      if (info.state != RunState::kRunning) text += " at " + name(info.node);
      text += '\n';
    }
    std::string name(NodeIndex node) const {
      return replay->functions()[replay->tree()[node].function].name;
    }
  };
  KernelScript s;
  const ThreadIndex first = s.script.thread(s.process, 100);
  const ThreadIndex second = s.script.thread(s.process, 101);
  s.script.enter(first, 1000, "f");
  s.script.enter(second, 1000, "g");
  s.leaves(100, 1100, false);
  s.syscall(101, 1150, 1);
  s.woken(100, 1200, 101);
  s.comes(100, 1250);
  s.syscall_end(101, 1300);
  s.leaves(101, 1400, true);
  s.comes(101, 1500);
  s.leaves(101, 1600, false);
  s.woken(101, 1700, 0);
  s.comes(101, 1800);
  s.leaves(101, 1850, false);
  s.woken(101, 1860, 100, ARCTRACE_WAKING_INTERRUPT);
  s.comes(101, 1880);
  s.script.exit(second, 1900);
  s.script.exit(first, 2000);
  States states;
  ReplayOptions options;
  options.schedule = &states;
  Replay replay(s.script.definitions, nullptr, options);
  states.replay = &replay;
  s.script.replay(replay);
  CHECK(states.text ==
        "100 runs 1000-1100\n"
        "100 blocked 1100-1200 by 101 in K:write at f\n"
        "100 ready 1200-1250 at f\n"
        "101 runs 1000-1400\n"
        "101 ready 1400-1500 preempted at g\n"
        "101 runs 1500-1600\n"
        "101 blocked 1600-1700 by 0 interrupted at g\n"
        "101 ready 1700-1800 at g\n"
        "101 runs 1800-1850\n"
        "101 blocked 1850-1860 by 100 interrupted at g\n"
        "101 ready 1860-1880 at g\n"
        "100 runs 1250-2000\n"
        "101 runs 1880-2000\n");
}

TEST_CASE("threads of other PID namespaces are found by their own numbers") {
  KernelScript s;
  constexpr uint32_t kSpaces[] = {77, 78};
  ThreadIndex threads[2];
  // Both processes have the number 3 in their namespaces; in the kernel's they are 203
  // and 204, and 3 is another thread.
  for (uint32_t i = 0; i < 2; ++i) {
    const ProcessIndex process = s.script.process(2, "/bin/contained");
    s.script.definitions.mutable_process(process)->pid_namespace = kSpaces[i];
    s.numbered(203 + i, 900 + i, 3, kSpaces[i]);
    threads[i] = s.script.thread(process, 3);
    s.script.enter(threads[i], 1000 + i, "f");
  }
  s.leaves(3, 1100, false);
  s.comes(3, 1150);
  s.leaves(203, 1200, false);
  s.comes(203, 1300);
  s.leaves(204, 1400, true);
  s.comes(204, 1430);
  // Another child gets the number, and is not in a namespace of its own.
  s.add(7, 1440, ARCTRACE_TYPE_FORKED, Bytes().u32(204).u32(204));
  s.leaves(204, 1450, false);
  for (const ThreadIndex thread : threads) s.script.exit(thread, 2000);
  Replay replay(s.script.definitions, nullptr);
  s.script.replay(replay);
  REQUIRE(replay.threads().size() == 2);
  CHECK(is(replay.tree().cpu_total(replay.threads()[0].root), 100, 0, 1));
  CHECK(is(replay.tree().cpu_total(replay.threads()[1].root), 30, 30, 1));
}

TEST_CASE(
    "of a thread whose number in the first PID namespace nobody told nothing is known") {
  KernelScript s;
  constexpr uint32_t kSpace = 77;
  const ProcessIndex process = s.script.process(2, "/bin/contained");
  s.script.definitions.mutable_process(process)->pid_namespace = kSpace;
  const ThreadIndex joined = s.script.thread(process, 3);
  const ThreadIndex other = s.script.thread(s.process, 100);
  s.script.enter(joined, 1000, "f");
  s.script.enter(other, 1000, "g");
  s.leaves(100, 1200, false);
  s.comes(100, 1300);
  // Another thread has this number in the first namespace.
  s.leaves(3, 1400, false);
  s.comes(3, 1500);
  s.script.exit(joined, 2000);
  s.script.exit(other, 2000);
  Replay replay(s.script.definitions, nullptr);
  s.script.replay(replay);
  REQUIRE(replay.threads().size() == 2);
  CHECK(is(replay.tree().cpu_total(replay.threads()[1].root), 100, 0, 1));
  const auto& times = replay.tree().cpu_total(replay.threads()[0].root);
  CHECK(times.off_ns == 0);
  CHECK(times.unknown_ns == 1000);
}

TEST_CASE("a thread whose definition is missing is no idle thread of a CPU's") {
  KernelScript s;
  const ThreadIndex unknown = s.script.thread(s.process, 0);
  const ThreadIndex thread = s.script.thread(s.process, 100);
  s.script.enter(unknown, 1000, "f");
  s.script.enter(thread, 1000, "g");
  s.leaves(100, 1200, false, 0);
  s.leaves(0, 1500, true, 100);
  s.script.exit(thread, 1800);
  s.script.exit(unknown, 2000);
  Replay replay(s.script.definitions, nullptr);
  s.script.replay(replay);
  REQUIRE(replay.threads().size() == 2);
  const CallTree& tree = replay.tree();
  const NodeIndex root = replay.threads()[0].root;
  CHECK(tree[root].total_ns == 1000);
  CHECK(tree.cpu_total(root).off_ns == 0);
  CHECK(tree.cpu_total(root).unknown_ns == 1000);
  CHECK(tree.cpu_total(root).switches == 0);
  CHECK(tree.cpu_total(replay.threads()[1].root).off_ns == 300);
}
