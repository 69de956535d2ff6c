// Stacks around time of which nothing is known: losses, gaps, functions switched off.
#include <doctest/doctest.h>

#include "tests/support/one_thread.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

Bytes enabled_body(uint32_t gate) { return Bytes().u32(gate).u32(0); }

}  // namespace

TEST_CASE("time while functions were off is nobody's, and of frames around it") {
  OneThread t;
  t.script.enter(t.thread, 10, "main");
  t.script.enter(t.thread, 20, "tick");
  t.script.add(kNoIndex, 22, ARCTRACE_TYPE_ENABLED,
               enabled_body(ARCTRACE_GATE_ALL & ~unsigned{ARCTRACE_GATE_FUNCTIONS}));
  t.script.text(t.thread, 300, "events are recorded all the same");
  t.script.add(kNoIndex, 500, ARCTRACE_TYPE_ENABLED, enabled_body(ARCTRACE_GATE_ALL));
  SUBCASE("the frame is open after it") {
    t.script.exit(t.thread, 510);
    t.script.exit(t.thread, 520);
    CHECK(t.result() == "main 1:20[tick 1:12[[functions off] 1:478]]");
  }
  SUBCASE("functions stay on afterwards") {
    t.script.exit(t.thread, 510);
    t.script.add(kNoIndex, 515, ARCTRACE_TYPE_ENABLED, enabled_body(ARCTRACE_GATE_ALL));
    t.script.exit(t.thread, 520);
    CHECK(t.result() == "main 1:20[tick 1:12[[functions off] 1:478]]");
  }
  SUBCASE("they are off to the end") {
    t.script.add(kNoIndex, 510, ARCTRACE_TYPE_ENABLED, enabled_body(0));
    t.script.text(kNoIndex, 600, "the end");
    CHECK(t.result() == "main 1:10[tick 1:12[[functions off] 2:568]] open=2");
  }
}

TEST_CASE("a frame that was left while functions were off ended when they went off") {
  OneThread t;
  t.script.enter(t.thread, 10, "main");
  t.script.enter(t.thread, 20, "tick");
  t.script.add(kNoIndex, 22, ARCTRACE_TYPE_ENABLED, enabled_body(0));
  t.script.add(kNoIndex, 500, ARCTRACE_TYPE_ENABLED, enabled_body(ARCTRACE_GATE_ALL));
  t.script.unwind(t.thread, 510, 1);
  t.script.enter(t.thread, 510, "tick");
  t.script.exit(t.thread, 512);
  t.script.exit(t.thread, 520);
  CHECK(t.result() == "main 1:28[[functions off] 1:478 tick 2:4] exit_lost=1");
}

TEST_CASE("time in which records were lost is nobody's") {
  RecordScript script;
  const ThreadIndex thread = script.program(1, "program");
  script.stack(thread, 0, {});
  script.enter(thread, 10, "main");
  script.enter(thread, 20, "f");
  script.add(thread, 500, ARCTRACE_TYPE_LOST, lost_body(ARCTRACE_LOST_FULL, 70, 30));
  script.stack(thread, 500, {"main", "g"});
  script.exit(thread, 510);
  script.exit(thread, 520);
  const ClockMap ticks({}, 1'000'000'000);
  ReplayOptions options;
  options.ticks = &ticks;
  Replay replay(script.definitions, nullptr, options);
  script.replay(replay);
  CHECK(tree_text(replay, replay.threads()[0].root) ==
        "main 1:20[[lost] 1:470 f 1:10 g 1:10]");
  CHECK(replay.tree()[replay.threads()[0].root].cum_ns == 520);
}

TEST_CASE("frames that no STACK has reported since a loss may differ") {
  OneThread t;
  t.script.stack(t.thread, 0, {});
  t.script.enter(t.thread, 0, "f");
  t.script.enter(t.thread, 1, "g");
  t.script.lost(t.thread, 2, 1);
  t.script.stack(t.thread, 2, {"k"}, 3);
  t.script.stack(t.thread, 3, {"f", "h", "k"});
  CHECK(t.result().find("!S1") == std::string::npos);
  t.script.stack(t.thread, 4, {"f", "x", "k"});
  CHECK(t.result().find("!S1") != std::string::npos);
}

TEST_CASE("after LOST, STACK gives the stack: the common part stays") {
  OneThread t;
  t.script.stack(t.thread, 0, {});
  t.script.enter(t.thread, 0, "main");
  t.script.enter(t.thread, 1, "f");
  t.script.enter(t.thread, 2, "g");
  t.script.lost(t.thread, 10, 7);
  t.script.stack(t.thread, 10, {"main", "f", "h", "k"});
  t.script.exit(t.thread, 12);
  t.script.exit(t.thread, 13);
  t.script.exit(t.thread, 14);
  t.script.exit(t.thread, 15);
  CHECK(t.result() ==
        "main 1:2[f 1:2[g 1:8 h 1:1[k 1:2]]] resyncs=1 exit_lost=1 entry_lost=2");
}

TEST_CASE("what gave way before the first record lies in all parts of the life") {
  OneThread t;
  Definitions& definitions = t.script.definitions;
  Process& process = *definitions.mutable_process(definitions.thread(t.thread)->process);
  process.exec_ns = 0;
  process.main_ns = 30;
  definitions.mutable_thread(t.thread)->start_ns = 10;
  Record& stack = t.script.stack(t.thread, 100, {"main"});
  stack.after_gap = stack.compact = true;
  t.script.exit(t.thread, 105);
  CHECK(t.result() ==
        "[constructors] 1:0[[missing] 1:20] [loader] 1:10 [missing] 1:70 main 1:5 "
        "entry_lost=1");
}

TEST_CASE("after a gap in the blocks, STACK gives the stack") {
  OneThread t;
  t.script.stack(t.thread, 0, {});
  t.script.enter(t.thread, 0, "main");
  t.script.enter(t.thread, 1, "f");
  Record& stack = t.script.stack(t.thread, 10, {"main"});
  stack.after_gap = true;
  SUBCASE("and in the thread's own blocks the time before it belongs to no frame") {
    stack.compact = true;
    t.script.exit(t.thread, 12);
    CHECK(t.result() == "main 1:3[[missing] 1:9 f 1:0] resyncs=1 exit_lost=1");
  }
  SUBCASE("and in shared blocks, where every STACK might follow a gap, time goes on") {
    t.script.exit(t.thread, 12);
    CHECK(t.result() == "main 1:3[f 1:9] resyncs=1 exit_lost=1");
  }
}

TEST_CASE("an earlier owner's loss does not concern this stack") {
  OneThread t;
  t.script.stack(t.thread, 0, {});
  t.script.enter(t.thread, 0, "f");
  t.script.lost(t.thread, 1, 7, ARCTRACE_LOST_INHERITED);
  t.script.stack(t.thread, 1, {"g"});
  CHECK(t.result() == "f 1:1 g 1:0 resyncs=1 exit_lost=1 entry_lost=1 open=1 !S1");
}

TEST_CASE("the loss stays at the node where it happened") {
  OneThread t;
  t.script.stack(t.thread, 0, {});
  t.script.enter(t.thread, 0, "f");
  t.script.lost(t.thread, 1, 7);
  t.script.exit(t.thread, 2);
  t.script.lost(t.thread, 9, 4, ARCTRACE_LOST_RESIDUAL);
  Replay replay(t.script.definitions, nullptr);
  t.script.replay(replay);
  const ThreadTree& thread = replay.threads()[0];
  const CallTree& tree = replay.tree();
  CHECK(tree.marks(tree[thread.root].first_child).lost_records == 7);
  CHECK(tree.marks(thread.root).lost_records == 4);
  // The recording lasts until then.
  CHECK(thread.stop_ns == 9);
}
