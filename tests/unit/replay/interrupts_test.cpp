// The time that interrupts take from threads, and the calls of the CPUs' `Interrupt`
// threads (SPEC.md READ-12).
#include <doctest/doctest.h>

#include <optional>

#include "reader/replay/kernel_records.hpp"
#include "tests/support/kernel_script.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

std::string word_of(const StateInfo& state) {
  if (state.interrupted) return "interrupted";
  switch (state.state) {
    case RunState::kRunning:
      return "running";
    case RunState::kReady:
      return "ready";
    case RunState::kBlocked:
      return "blocked";
    case RunState::kNotKnown:
      break;
  }
  return "not known";
}

// Thread 100, and its and two CPUs' replayed trees.
struct InterruptedThread : KernelScript {
  ThreadIndex thread = script.thread(process, 100);
  const ThreadIndex cpu_0 = interrupt_thread(0), cpu_1 = interrupt_thread(1);
  std::optional<Replay> replay;
  std::vector<StateInfo> states;  // of thread 100

  class States : public ScheduleListener {
   public:
    explicit States(InterruptedThread& all) : all_(all) {}
    void state_ended(const StateInfo& state) override {
      if (state.thread == all_.thread) all_.states.push_back(state);
    }

   private:
    InterruptedThread& all_;
  };

  // The tree of the thread; also checks sums that must be right.
  std::string result(ReplayOptions options = {}) {
    States listener(*this);
    states.clear();
    options.schedule = &listener;
    const bool is_wall = options.clock == ReportClock::kWall;
    replay.emplace(script.definitions, nullptr, std::move(options));
    script.replay(*replay);
    REQUIRE(replay->threads().size() == 1);
    const ThreadTree& tree = replay->threads()[0];
    if (is_wall) {
      CHECK(replay->tree()[tree.root].total_ns ==
            static_cast<uint64_t>(tree.stop_ns - tree.start_ns));
    }
    CHECK(replay->findings().empty());
    return tree_text(*replay, root());
  }
  NodeIndex root() const { return replay->threads()[0].root; }
  const CpuTime& times() const { return replay->tree().cpu_total(root()); }
  // The tree of a CPU's `Interrupt` thread; "-": the report does not have it.
  std::string tree_of_cpu(ThreadIndex of) const {
    for (const ThreadTree& tree : replay->interrupts()) {
      if (tree.thread == of) return tree_text(*replay, tree.root);
    }
    return "-";
  }
  // The states of thread 100: "running 100, blocked 50".
  std::string states_text() const {
    std::string text;
    for (const StateInfo& state : states) {
      text += (text.empty() ? "" : ", ") + word_of(state) + " " +
              std::to_string(state.stop_ns - state.start_ns);
    }
    return text;
  }
};

}  // namespace

TEST_CASE("an interrupt's time is nobody's own, and off the CPU") {
  InterruptedThread t;
  t.script.enter(t.thread, 1000, "f");
  t.script.enter(t.thread, 1100, "g");
  t.interrupt(100, 1200, 300, ARCTRACE_INTERRUPT_CPU, ARCTRACE_CPU_TIMER);
  t.script.exit(t.thread, 1600);  // g
  t.script.exit(t.thread, 2000);
  CHECK(t.result() == "f 1:500[g 1:200[[interrupts] 1:300]]");
  CHECK(t.times().cpu_ns == 700);
  CHECK(t.times().off_ns == 300);
  CHECK(t.times().ready_ns == 300);
  CHECK(t.times().unknown_ns == 0);
  CHECK(t.times().switches == 0);
  CHECK(t.states_text() == "running 200, interrupted 300, running 500");
  const CallTree& tree = t.replay->tree();
  const NodeIndex g = tree[tree[t.root()].first_child].first_child;
  CHECK(tree.cpu_self(g).interrupts == 1);
  CHECK(tree.cpu_self(g).off_ns == 0);
  CHECK(t.tree_of_cpu(t.cpu_0) == "K:timer interrupt 1:300");
  CHECK(t.tree_of_cpu(t.cpu_1) == "-");

  ReplayOptions options;
  options.clock = ReportClock::kCpu;
  CHECK(t.result(options) == "f 1:500[g 1:200[[interrupts] 1:0]]");
}

TEST_CASE("interrupts of one CPU nest, and what is within counts once") {
  InterruptedThread t;
  t.script.enter(t.thread, 1000, "f");
  t.interrupt(100, 1100, 400, ARCTRACE_INTERRUPT_SOFT, ARCTRACE_SOFTIRQ_NET_RECEIVE);
  t.interrupt(100, 1200, 100, ARCTRACE_INTERRUPT_DEVICE, 36, "disk");
  t.interrupt(100, 1350, 50, ARCTRACE_INTERRUPT_DEVICE, 36, "disk");
  t.script.exit(t.thread, 2000);
  CHECK(t.result() == "f 1:600[[interrupts] 1:400]");
  CHECK(t.times().interrupts == 3);
  CHECK(t.times().ready_ns == 400);
  CHECK(t.tree_of_cpu(t.cpu_0) == "K:softirq net-rx 1:250[K:irq 36 disk 2:150]");
  CHECK(t.states_text() == "running 100, interrupted 400, running 500");
}

TEST_CASE("an interrupt within another one ends with it at the latest") {
  InterruptedThread t;
  t.script.enter(t.thread, 1000, "f");
  t.interrupt(100, 1100, 100, ARCTRACE_INTERRUPT_SOFT, ARCTRACE_SOFTIRQ_TIMER);
  t.interrupt(100, 1150, UINT64_MAX, ARCTRACE_INTERRUPT_CPU, ARCTRACE_CPU_CALL);
  t.script.exit(t.thread, 2000);
  CHECK(t.result() == "f 1:900[[interrupts] 1:100]");
  CHECK(t.tree_of_cpu(t.cpu_0) == "K:softirq timer 1:50[K:call interrupt 1:50]");
}

TEST_CASE("CPUs serve interrupts at the same time") {
  InterruptedThread t;
  t.script.enter(t.thread, 1000, "f");
  t.interrupt(100, 1100, 300, ARCTRACE_INTERRUPT_CPU, ARCTRACE_CPU_TIMER);
  t.cpu = 1;
  t.interrupt(200, 1150, 50, ARCTRACE_INTERRUPT_CPU, ARCTRACE_CPU_RESCHEDULE);
  t.interrupt(200, 1300, 400, ARCTRACE_INTERRUPT_CPU, ARCTRACE_CPU_WORK);
  t.script.exit(t.thread, 2000);
  CHECK(t.result() == "f 1:700[[interrupts] 1:300]");
  CHECK(t.tree_of_cpu(t.cpu_0) == "K:timer interrupt 1:300");
  CHECK(t.tree_of_cpu(t.cpu_1) == "K:reschedule interrupt 1:50 K:work interrupt 1:400");
}

TEST_CASE("only leaving its CPU ends an interrupt for a thread") {
  InterruptedThread t;
  t.script.enter(t.thread, 1000, "f");
  t.interrupt(100, 1100, 300, ARCTRACE_INTERRUPT_SOFT, ARCTRACE_SOFTIRQ_NET_RECEIVE);
  t.woken(101, 1150, 100, ARCTRACE_WAKING_INTERRUPT);
  t.contention(100, 1160, 0x1000);
  t.contention_end(100, 1170, 0x1000);
  t.script.enter(t.thread, 1200, "g");  // by another clock
  t.script.exit(t.thread, 1300);
  t.interrupt(100, 1600, UINT64_MAX, ARCTRACE_INTERRUPT_DEVICE, 1);
  t.leaves(100, 1700, false);
  t.comes(100, 1800);
  t.script.exit(t.thread, 2000);
  CHECK(t.result() == "f 1:600[[interrupts] 3:300 g 1:0[[interrupts] 1:100]]");
  CHECK(t.times().interrupts == 2);  // the wake-up is of an interrupt
  CHECK(t.times().cpu_ns == 500);
  CHECK(t.states_text() ==
        "running 100, interrupted 300, running 200, interrupted 100, "
        "blocked "
        "100, "
        "running 200");
}

TEST_CASE("interrupts that woke a thread count, also those without a record") {
  InterruptedThread t;
  t.script.enter(t.thread, 1000, "f");
  t.woken(101, 1050, 100, ARCTRACE_WAKING_INTERRUPT);
  t.interrupt(100, 1100, 100, ARCTRACE_INTERRUPT_CPU, ARCTRACE_CPU_TIMER);
  t.woken(101, 1150, 100, ARCTRACE_WAKING_INTERRUPT);
  t.woken(101, 1300, 100, ARCTRACE_WAKING_INTERRUPT);
  t.script.exit(t.thread, 2000);
  CHECK(t.result() == "f 1:900[[interrupts] 1:100]");
  CHECK(t.times().interrupts == 3);
}

TEST_CASE("records of the kernel's are lost in the middle of an interrupt") {
  InterruptedThread t;
  t.kernel_gap(1150, 1500, 0);
  t.script.enter(t.thread, 1000, "f");
  t.interrupt(100, 1100, 200, ARCTRACE_INTERRUPT_CPU, ARCTRACE_CPU_TIMER);
  t.interrupt(100, 1600, 100, ARCTRACE_INTERRUPT_CPU, ARCTRACE_CPU_TIMER);
  t.script.exit(t.thread, 2000);
  CHECK(t.result() == "f 1:850[[interrupts] 2:150]");
  CHECK(t.states_text() ==
        "running 100, interrupted 50, not known 450, interrupted 100, "
        "running 300");
  CHECK(t.times().unknown_ns == 450);
  CHECK(t.times().cpu_ns == 400);
  CHECK(t.tree_of_cpu(t.cpu_0) == "K:timer interrupt 2:300");
}

TEST_CASE("a range begins or ends in the middle of an interrupt") {
  InterruptedThread t;
  t.script.enter(t.thread, 1000, "f");
  t.interrupt(100, 1100, 200, ARCTRACE_INTERRUPT_SOFT, ARCTRACE_SOFTIRQ_BLOCK);
  t.interrupt(100, 1250, 40, ARCTRACE_INTERRUPT_DEVICE, 5, "disk");
  t.interrupt(100, 1500, 200, ARCTRACE_INTERRUPT_SOFT, ARCTRACE_SOFTIRQ_BLOCK);
  t.script.exit(t.thread, 2000);
  ReplayOptions options;
  options.filter.from_ns = 1200;
  options.filter.until_ns = 1600;
  CHECK(t.result(options) == "f 1:200[[interrupts] 2:200]");
  CHECK(t.tree_of_cpu(t.cpu_0) == "K:softirq block 2:160[K:irq 5 disk 1:40]");
  CHECK(t.states_text() == "interrupted 100, running 200, interrupted 100");
  options.filter.from_ns = 1310;
  options.filter.until_ns = 1500;
  CHECK(t.result(options) == "f 1:190");
  CHECK(t.tree_of_cpu(t.cpu_0) == "-");
}

TEST_CASE("an interrupt that lasts longer than the recording ends with it") {
  InterruptedThread t;
  t.script.enter(t.thread, 1000, "f");
  t.interrupt(100, 1900, 500, ARCTRACE_INTERRUPT_CPU, ARCTRACE_CPU_TIMER);
  t.script.text(t.thread, 2000, "last");
  CHECK(t.result() == "f 1:900[[interrupts] 1:100]");
  CHECK(t.tree_of_cpu(t.cpu_0) == "K:timer interrupt 1:100");
}

TEST_CASE("a thread that is filtered out has interrupts, and so have the CPUs") {
  InterruptedThread t;
  t.script.enter(t.thread, 1000, "f");
  t.interrupt(100, 1100, 100, ARCTRACE_INTERRUPT_CPU, ARCTRACE_CPU_TIMER);
  t.script.exit(t.thread, 2000);
  ReplayOptions options;
  options.wants_thread = [&](ThreadIndex thread) { return thread != t.cpu_0; };
  CHECK(t.result(options) == "f 1:900[[interrupts] 1:100]");
  CHECK(t.tree_of_cpu(t.cpu_0) == "-");
  options.wants_thread = [&](ThreadIndex thread) { return thread != t.thread; };
  Replay replay(t.script.definitions, nullptr, options);
  t.script.replay(replay);
  CHECK(replay.threads().empty());
  REQUIRE(replay.interrupts().size() == 1);
  CHECK(tree_text(replay, replay.interrupts()[0].root) == "K:timer interrupt 1:100");
}

TEST_CASE("any nesting and any number is borne") {
  InterruptedThread t;
  t.script.enter(t.thread, 1000, "f");
  for (uint32_t i = 0; i < 1000; ++i) {
    t.cpu = i % 3 == 0 ? UINT32_MAX : 0;
    t.interrupt(i % 7 == 0 ? 300u : 100u, 1100 + i / 2, UINT64_MAX - i, i,
                UINT32_MAX - i);
  }
  t.cpu = 0;
  t.leaves(100, 1800, true);
  t.script.exit(t.thread, 2000);
  t.result();
  CHECK(t.times().cpu_ns + t.times().off_ns + t.times().unknown_ns == 1000);
}
