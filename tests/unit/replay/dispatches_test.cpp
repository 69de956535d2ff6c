// Time off the CPU: what the kernel's records add to a thread's frames.
#include "reader/replay/dispatches.hpp"

#include <doctest/doctest.h>

#include "tests/support/record_script.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

// Threads of one traced process, and the kernel's own records of its tasks.
struct Scheduled {
  RecordScript script;
  ProcessIndex process = script.process(100, "/bin/program");

  // The thread as the kernel's records have it.
  ThreadIndex task(uint32_t tid) {
    Thread facts;
    facts.writer = ARCTRACE_WRITER_KERNEL | tid;
    facts.tid = tid;
    return script.definitions.add_thread(facts);
  }
  void leaves(uint32_t tid, int64_t time_ns, bool ready, uint32_t next = 0) {
    script.add(task(tid), time_ns, ARCTRACE_TYPE_SWITCH,
               Bytes().u32(0).u32(100).u32(ready ? 0 : 1).u32(next).u32(100));
  }
  void comes(uint32_t tid, int64_t time_ns) { leaves(0, time_ns, true, tid); }
  void woken(uint32_t tid, int64_t time_ns) {
    script.add(task(7), time_ns, ARCTRACE_TYPE_WAKING,
               Bytes().u32(0).u32(7).u32(tid).u32(100).u32(0));
  }
};

bool is(const OffTime& off, uint64_t off_ns, uint64_t ready_ns, uint64_t switches) {
  CHECK(off.off_ns == off_ns);
  CHECK(off.ready_ns == ready_ns);
  CHECK(off.switches == switches);
  return off.off_ns == off_ns && off.ready_ns == ready_ns && off.switches == switches;
}

NodeIndex child_of(const Replay& replay, NodeIndex node) {
  return replay.tree()[node].first_child;
}

}  // namespace

TEST_CASE("sleeping and waiting for a CPU are told apart, and charged to the frame") {
  Scheduled s;
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
  CHECK(is(replay.tree().off_base(g), 350, 50, 1));
  CHECK(is(replay.tree().off_base(f), 30, 30, 1));
  CHECK(is(replay.tree().off_cum(f), 380, 80, 2));
  CHECK(is(replay.tree().off_cum(replay.threads()[0].root), 380, 80, 2));
}

TEST_CASE("what lies outside of the thread's records is not its time") {
  Scheduled s;
  const ThreadIndex thread = s.script.thread(s.process, 100);
  s.leaves(100, 100, true);
  s.comes(100, 900);
  s.script.enter(thread, 1000, "f");
  s.leaves(100, 1100, false);  // and a record says that it runs again
  s.script.exit(thread, 1300);
  s.leaves(100, 1400, false);
  s.comes(100, 1500);
  Replay replay(s.script.definitions, nullptr);
  s.script.replay(replay);
  const NodeIndex root = replay.threads()[0].root;
  CHECK(is(replay.tree().off_cum(root), 0, 0, 1));
  CHECK(replay.tree()[root].cum_ns == 300);
}

TEST_CASE("of two threads with one number the later one is meant once it has begun") {
  Scheduled s;
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
  CHECK(is(replay.tree().off_cum(replay.threads()[0].root), 100, 0, 1));
  CHECK(is(replay.tree().off_cum(replay.threads()[1].root), 300, 0, 1));
}

TEST_CASE("a call that is too short to be shown gives its time off the CPU away, too") {
  Scheduled s;
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
  CHECK(is(replay.tree().off_base(f), 40, 0, 1));
  CHECK(child_of(replay, f) == kNoNode);
}
