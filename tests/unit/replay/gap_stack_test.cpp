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
  CHECK(replay.tree()[replay.threads()[0].root].total_ns == 520);
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

TEST_CASE("frames that a handler entered in a block that gave way are those of STACK") {
  const auto make = [](int64_t chain_begin_ns) {
    OneThread t;
    t.script.definitions.set_chain_begin(chain_begin_ns);
    t.script.stack(t.thread, 0, {}).compact = true;
    t.script.enter(t.thread, 0, "main");
    t.script.enter(t.thread, 1, "f");
    t.script.stack(t.thread, 5, {"main", "f", "handler"}).compact = true;
    t.script.unwind(t.thread, 6, 2);
    t.script.enter(t.thread, 7, "g");
    t.script.exit(t.thread, 9);
    t.script.exit(t.thread, 10);
    return t.result();
  };
  const std::string tree =
      "main 1:3[f 1:4[handler 1:1] g 1:2] resyncs=1 unwound=2 entry_lost=1";
  CHECK(make(6) == tree);
  CHECK(make(INT64_MAX) == tree);
  CHECK(make(5) == tree + " !S1");
  CHECK(make(INT64_MIN) == tree + " !S1");
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

TEST_CASE("the tracer's starts are parts of the life, and their time is in no sum") {
  using Starts = std::vector<TracerStart>;
  const auto replay = [](const Starts& starts, int64_t main_ns) {
    OneThread t;
    Definitions& definitions = t.script.definitions;
    Process& process =
        *definitions.mutable_process(definitions.thread(t.thread)->process);
    process.exec_ns = 0;
    process.main_ns = main_ns;
    process.tracer_starts = starts;
    definitions.mutable_thread(t.thread)->start_ns = 10;
    t.script.enter(t.thread, 100, "main");
    t.script.exit(t.thread, 105);
    Replay run(definitions, nullptr);
    t.script.replay(run);
    return tree_text(run, run.threads()[0].root);
  };
  CHECK(replay({{8, 27}}, 30) ==
        "[arctrace] 1:0 [constructors] 1:3 [loader] 1:8 main 1:5");
  CHECK(replay({{8, 12}, {17, 27}}, 30) ==
        "[arctrace] 1:0 [constructors] 1:8 [loader] 1:8 main 1:5");
  CHECK(replay({{10, 30}}, 30) ==
        "[arctrace] 1:0 [constructors] 1:0 [loader] 1:10 main 1:5");
  CHECK(replay({{8, 27}}, INT64_MAX) == "[arctrace] 1:0 [loader] 1:8 main 1:5");
  // These times cannot be: the thread joins in the first one, and then main is called.
  const std::string without = "[constructors] 1:20 [loader] 1:10 main 1:5";
  const Starts wrong[] = {{{11, 27}},          {{5, 9}},           {{8, 31}}, {{-1, 27}},
                          {{8, 20}, {19, 27}}, {{8, 20}, {25, 31}}};
  for (const Starts& starts : wrong) CHECK(replay(starts, 30) == without);
  CHECK(replay({}, 30) == without);
}

TEST_CASE("exit handlers whose begin was not recorded run in exit, or outside of main") {
  OneThread t;
  Definitions& definitions = t.script.definitions;
  definitions.mutable_process(definitions.thread(t.thread)->process)->exit_ns = 100;
  t.script.enter(t.thread, 10, "main");
  t.script.enter(t.thread, 15, "work");
  t.script.add(kNoIndex, 20, ARCTRACE_TYPE_ENABLED, enabled_body(0));
  t.script.add(kNoIndex, 150, ARCTRACE_TYPE_ENABLED, enabled_body(ARCTRACE_GATE_ALL));
  SUBCASE("main has called exit") {
    t.script.stack(t.thread, 160, {"main", "exit", "handler"});
    t.script.exit(t.thread, 170);
    CHECK(
        t.result() ==
        "main 1:5[[exit] 1:10[[functions off] 1:50] [functions off] 1:80 exit 1:0[[exit] "
        "1:0[handler 1:10]] work 1:5] resyncs=1 exit_lost=1 entry_lost=2 open=2");
  }
  SUBCASE("main has returned") {
    t.script.stack(t.thread, 160, {"handler"});
    t.script.exit(t.thread, 170);
    CHECK(t.result() ==
          "[exit] 1:10[[functions off] 1:50 handler 1:10] [functions off] 1:80 "
          "main 1:5[work 1:5] resyncs=1 exit_lost=2 entry_lost=1");
  }
}

TEST_CASE("exit handlers are not shown if nothing more is recorded of the thread") {
  RecordScript script;
  const ThreadIndex thread = script.program(1, "program");
  script.definitions.mutable_process(0)->exit_ns = 100;
  script.enter(thread, 10, "main");
  const auto tree = [&] {
    const ClockMap ticks({}, 1'000'000'000);
    ReplayOptions options;
    options.ticks = &ticks;
    Replay replay(script.definitions, nullptr, options);
    script.replay(replay);
    return tree_text(replay, replay.threads()[0].root);
  };
  SUBCASE("because functions stay off") {
    script.add(kNoIndex, 20, ARCTRACE_TYPE_ENABLED, enabled_body(0));
    script.add(kNoIndex, 200, ARCTRACE_TYPE_ENABLED, enabled_body(0));
    CHECK(tree() == "main 1:10[[functions off] 1:180]");
  }
  SUBCASE("because all of it was lost") {
    script.add(thread, 200, ARCTRACE_TYPE_LOST,
               lost_body(ARCTRACE_LOST_FULL, 9, 5, ARCTRACE_LOST_RESIDUAL));
    CHECK(tree() == "main 1:0[[lost] 1:190]");
  }
}

TEST_CASE("an exit whose entry was overwritten leaves no frame that is known") {
  OneThread t;
  t.script.stack(t.thread, 0, {});
  t.script.enter(t.thread, 0, "main");
  t.script.enter(t.thread, 1, "f");
  t.script.exit(t.thread, 5).after_gap = true;
  t.script.exit_named(t.thread, 6, "handler").after_gap = true;
  t.script.stack(t.thread, 7, {"main", "f"});
  t.script.exit(t.thread, 10);
  t.script.exit(t.thread, 12);
  CHECK(t.result() == "main 1:3[f 1:9] orphans=2");
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
  // The recording lasts until that time.
  CHECK(thread.stop_ns == 9);
}

TEST_CASE("a thread whose first records are missing begins when it began") {
  RecordScript script;
  const ThreadIndex thread = script.thread(script.process(1, "/bin/program"), 2);
  script.definitions.mutable_thread(thread)->start_ns = 60;
  const ClockMap ticks({}, 1'000'000'000);
  ReplayOptions options;
  options.ticks = &ticks;
  const auto check = [&](int64_t start_ns, const std::string& text) {
    script.exit(thread, 600);
    Replay replay(script.definitions, nullptr, options);
    script.replay(replay);
    const ThreadTree& tree = replay.threads()[0];
    CHECK(tree.start_ns == start_ns);
    CHECK(replay.tree()[tree.root].total_ns == static_cast<uint64_t>(600 - start_ns));
    CHECK(tree_text(replay, tree.root) == text);
  };
  SUBCASE("overwritten") {
    options.mode = ARCTRACE_MODE_OVERWRITE;
    Record& first = script.stack(thread, 500, {"f"});
    first.after_gap = first.compact = true;
    check(60, "[overwritten] 1:440 f 1:100");
  }
  SUBCASE("lost") {
    script.add(thread, 500, ARCTRACE_TYPE_LOST, lost_body(ARCTRACE_LOST_FULL, 2, 70));
    script.stack(thread, 500, {"f"});
    check(70, "[lost] 1:430 f 1:100");
  }
  SUBCASE("in another file") {
    Record& first = script.stack(thread, 500, {"f"});
    first.after_gap = first.compact = true;
    check(500, "f 1:100");
  }
}
