// The stack machine, rule by rule (reader/replay/thread_stack.hpp).
#include <doctest/doctest.h>

#include <functional>

#include "tests/support/record_script.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

// A script of one thread, replayed.
struct OneThread {
  RecordScript script;
  ThreadIndex thread;

  explicit OneThread(uint32_t origin = ARCTRACE_ORIGIN_EXEC)
      : thread(script.program(100, "program", origin)) {}

  // "f 1:20[g 2:5]", then the totals that are not 0 and the findings' rules.
  std::string result() {
    Replay replay(script.definitions, nullptr);
    script.replay(replay);
    last = tree_text(replay, replay.threads()[0].root);
    const ReplayTotals& t = replay.totals();
    append("orphans", t.orphans);
    append("resyncs", t.resyncs);
    append("unwound", t.unwound);
    append("exit_lost", t.exit_lost);
    append("entry_lost", t.entry_lost);
    append("before", t.entered_before);
    append("inherited", t.inherited);
    append("open", t.open);
    for (const Finding& finding : replay.findings()) last += " !" + finding.rule;
    const ThreadTree& tree = replay.threads()[0];
    CHECK(replay.tree()[tree.root].cum_ns ==
          static_cast<uint64_t>(tree.stop_ns - tree.start_ns));
    return last;
  }

 private:
  void append(const char* name, uint64_t count) {
    if (count != 0) last += std::string(" ") + name + "=" + std::to_string(count);
  }
  std::string last;
};

}  // namespace

TEST_CASE("IBM's treetest: the shares are exact") {
  RecordScript script;
  const ThreadIndex thread = script.program(1, "treetest");
  int64_t now = 0;
  const std::function<void(const std::string&, int64_t)> call =
      [&](const std::string& name, int64_t work) {
        script.enter(thread, now, name);
        now += work;
        if (name == "main") {
          call("mainA", 0);
          call("mainB", 0);
        } else if (name == "mainA" || name == "mainB") {
          call(name + "A", name == "mainA" ? 10 : 30);
          call(name + "B", name == "mainA" ? 20 : 40);
        }
        script.exit(thread, now);
      };
  script.enter(thread, now, "all");
  for (int i = 0; i < 100; ++i) call("main", 0);
  script.exit(thread, now);

  Replay replay(script.definitions, nullptr);
  script.replay(replay);
  const NodeIndex root = replay.threads()[0].root;
  const uint64_t all = replay.tree()[root].cum_ns;
  CHECK(all == 100 * 100);
  const auto share = [&](std::string_view path) {
    const CallNode& node = node_at(replay, root, path);
    CHECK(node.calls == 100);
    CHECK(node.cum_ns * 100 % all == 0);
    return node.cum_ns * 100 / all;
  };
  CHECK(share("all/main") == 100);
  CHECK(share("all/main/mainA") == 30);
  CHECK(share("all/main/mainA/mainAA") == 10);
  CHECK(share("all/main/mainA/mainAB") == 20);
  CHECK(share("all/main/mainB") == 70);
  CHECK(share("all/main/mainB/mainBA") == 30);
  CHECK(share("all/main/mainB/mainBB") == 40);
}

TEST_CASE("time goes to the innermost frame before the stack changes") {
  OneThread t;
  t.script.text(t.thread, 5, "first");
  t.script.enter(t.thread, 10, "f");
  t.script.enter(t.thread, 13, "g");
  t.script.exit(t.thread, 20);
  t.script.exit(t.thread, 21);
  t.script.text(t.thread, 30, "last");
  CHECK(t.result() == "f 1:4[g 1:7]");
}

TEST_CASE("time that goes back stands still") {
  OneThread t;
  t.script.enter(t.thread, 10, "f");
  t.script.enter(t.thread, 20, "g");
  t.script.exit(t.thread, 15);
  t.script.exit(t.thread, 30);
  CHECK(t.result() == "f 1:20[g 1:0]");
}

TEST_CASE("extreme times overflow nothing") {
  OneThread t;
  t.script.enter(t.thread, INT64_MIN, "f");
  t.script.exit(t.thread, INT64_MAX);
  CHECK(t.result() == "f 1:" + std::to_string(uint64_t{1} << 62));
}

TEST_CASE("open frames last until the thread's end, or the recording's") {
  RecordScript script;
  const ThreadIndex killed = script.program(1, "killed");
  const ThreadIndex exits = script.program(2, "exits");
  const ThreadIndex lives = script.program(3, "lives");
  const ThreadIndex unseen = script.program(4, "unseen");
  for (const ThreadIndex thread : {killed, exits, lives, unseen}) {
    script.enter(thread, 10, "f");
  }
  script.text(lives, 20, "the last record of the thread");
  script.text(kNoIndex, 500, "the recording ends");
  script.definitions.mutable_thread(killed)->end_ns = 300;
  script.definitions.mutable_thread(exits)->end_ns = 400;
  Process& process =
      *script.definitions.mutable_process(script.definitions.threads()[exits].process);
  process.end_ns = 390;
  process.end_how = ARCTRACE_END_EXIT;
  script.definitions.mutable_thread(unseen)->ended_unseen = true;
  Replay replay(script.definitions, nullptr);
  script.replay(replay);
  const auto duration = [&](ThreadIndex thread) {
    const ThreadTree& tree = replay.threads()[thread];
    CHECK(tree.stop_ns - tree.start_ns ==
          static_cast<int64_t>(replay.tree()[tree.root].cum_ns));
    return node_at(replay, tree.root, "f").cum_ns;
  };
  CHECK(duration(killed) == 290);
  CHECK(duration(exits) == 380);
  CHECK(duration(lives) == 490);
  CHECK(duration(unseen) == 0);
}

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
    CHECK(t.result() == "main 1:20[tick 1:12[[functions off] 2:478]]");
  }
  SUBCASE("functions stay on afterwards") {
    t.script.exit(t.thread, 510);
    t.script.add(kNoIndex, 515, ARCTRACE_TYPE_ENABLED, enabled_body(ARCTRACE_GATE_ALL));
    t.script.exit(t.thread, 520);
    CHECK(t.result() == "main 1:20[tick 1:12[[functions off] 2:478]]");
  }
  SUBCASE("they are off to the end") {
    t.script.add(kNoIndex, 510, ARCTRACE_TYPE_ENABLED, enabled_body(0));
    t.script.text(kNoIndex, 600, "the end");
    CHECK(t.result() == "main 1:10[tick 1:12[[functions off] 3:568]] open=2");
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

TEST_CASE("recursion makes a node for each level") {
  OneThread t;
  for (int i = 0; i < 3; ++i) t.script.enter(t.thread, i, "f");
  for (int i = 3; i < 6; ++i) t.script.exit(t.thread, i);
  CHECK(t.result() == "f 1:2[f 1:2[f 1:1]]");
}

TEST_CASE("100,000 frames deep, open at the end") {
  OneThread t;
  for (int i = 0; i < 100'000; ++i) t.script.enter(t.thread, i, "f");
  Replay replay(t.script.definitions, nullptr);
  t.script.replay(replay);
  CHECK(replay.totals().open == 100'000);
  CHECK(replay.tree()[replay.threads()[0].root].cum_ns == 99'999);
}

TEST_CASE("EXIT_NAMED of a deeper frame pops to it") {
  OneThread t;
  t.script.enter(t.thread, 0, "f");
  t.script.enter(t.thread, 1, "g");
  t.script.enter(t.thread, 2, "h");
  t.script.exit_named(t.thread, 5, "f");
  t.script.enter(t.thread, 6, "f");
  t.script.exit_named(t.thread, 8, "f");
  CHECK(t.result() == "f 2:3[g 1:1[h 1:3]] exit_lost=2");
}

TEST_CASE("EXIT_NAMED on an empty stack becomes the frame around all so far") {
  OneThread t;
  t.script.enter(t.thread, 0, "g");
  t.script.exit(t.thread, 3);
  t.script.exit_named(t.thread, 10, "f");
  t.script.enter(t.thread, 11, "g");
  t.script.exit(t.thread, 15);
  t.script.exit_named(t.thread, 16, "main");
  CHECK(t.result() == "main 1:2[f 1:7[g 1:3] g 1:4] before=2");
}

TEST_CASE("a function that was adopted may be called again") {
  OneThread t;
  t.script.text(t.thread, 0, "");
  t.script.exit_named(t.thread, 10, "f");
  t.script.enter(t.thread, 11, "f");
  t.script.exit(t.thread, 15);
  CHECK(t.result() == "f 2:14 before=1");
}

TEST_CASE("EXIT_NAMED that is found nowhere changes nothing") {
  OneThread t;
  t.script.enter(t.thread, 0, "f");
  t.script.enter(t.thread, 1, "g");
  t.script.exit_named(t.thread, 2, "other");
  t.script.exit(t.thread, 5);
  t.script.exit(t.thread, 6);
  CHECK(t.result() == "f 1:2[g 1:4] orphans=1");
}

TEST_CASE("a STACK of the innermost frames leaves a known stack known") {
  OneThread t;
  t.script.stack(t.thread, 0, {"f", "g", "h"});
  t.script.stack(t.thread, 1, {"h"}, 3);
  t.script.exit_named(t.thread, 2, "g");  // the writer has looked: another g was meant
  t.script.exit(t.thread, 3);
  CHECK(t.result() == "f 1:0[g 1:0[h 1:3]] orphans=1 entry_lost=3 open=2");
}

TEST_CASE("a STACK of other innermost frames makes the rest unknown") {
  OneThread t;
  t.script.stack(t.thread, 0, {"f", "g", "h"});
  t.script.lost(t.thread, 1, 1);
  t.script.stack(t.thread, 1, {"i"}, 3);
  t.script.exit_named(t.thread, 2, "g");
  CHECK(t.result().find("orphans") == std::string::npos);
}

TEST_CASE("EXIT_NAMED in deep stacks: found and not found") {
  OneThread t;
  for (int i = 0; i < 200; ++i) {
    t.script.enter(t.thread, i, "f" + std::to_string(i % 150));
  }
  t.script.exit_named(t.thread, 200, "other");
  t.script.exit_named(t.thread, 200, "f120");
  t.script.exit_named(t.thread, 200, "f120");
  t.script.exit_named(t.thread, 200, "f50");
  Replay replay(t.script.definitions, nullptr);
  t.script.replay(replay);
  // f50 stands at 50 only: the one at 200 was popped with f120.
  CHECK(replay.totals().orphans == 2);
  CHECK(replay.totals().exit_lost == 79 + 69);
  CHECK(replay.totals().open == 50);
}

TEST_CASE("EXIT_NAMED beyond the writer's limit leaves the innermost frame") {
  OneThread t;
  for (int i = 0; i < 1030; ++i) t.script.enter(t.thread, i, "rec");
  t.script.enter(t.thread, 1030, "leaf");
  t.script.lost(t.thread, 1031, 1);
  t.script.stack(t.thread, 1031, {}, 1028);
  t.script.exit_named(t.thread, 1032, "leaf");  // it was entered in place of a rec
  for (int i = 1027; i > 1000; --i) t.script.exit_named(t.thread, 1033, "rec");
  Replay replay(t.script.definitions, nullptr);
  t.script.replay(replay);
  CHECK(replay.totals().orphans == 0);
  CHECK(replay.totals().open == 1000);
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

TEST_CASE("endless stray exits nest no endless tree") {
  OneThread t;
  t.script.text(t.thread, 0, "");
  for (int i = 0; i < 70'000; ++i) t.script.exit_named(t.thread, i, "f");
  Replay replay(t.script.definitions, nullptr);
  t.script.replay(replay);
  CHECK(replay.totals().entered_before == 65'536);
  CHECK(replay.totals().orphans == 70'000 - 65'536);
}

TEST_CASE("EXIT on an empty stack is an orphan, and a finding if nothing is missing") {
  OneThread t;
  t.script.exit(t.thread, 0);
  t.script.stack(t.thread, 1, {});
  t.script.exit(t.thread, 2);
  CHECK(t.result() == " orphans=2 !S2");
}

TEST_CASE("longjmp: UNWIND leaves frames without exit") {
  OneThread t;
  t.script.stack(t.thread, 0, {});
  t.script.enter(t.thread, 0, "f");
  t.script.enter(t.thread, 1, "g");
  t.script.enter(t.thread, 2, "h");
  t.script.unwind(t.thread, 5, 2);
  t.script.enter(t.thread, 6, "k");
  t.script.exit(t.thread, 7);
  t.script.exit(t.thread, 9);
  CHECK(t.result() == "f 1:4[g 1:1[h 1:3] k 1:1] unwound=2");
}

TEST_CASE("UNWIND of more frames than are open") {
  OneThread t;
  t.script.stack(t.thread, 0, {});
  t.script.enter(t.thread, 0, "f");
  t.script.unwind(t.thread, 5, UINT32_MAX);
  CHECK(t.result() == "f 1:5 unwound=1 !S2");
}

TEST_CASE("STACK that agrees changes nothing") {
  OneThread t;
  t.script.stack(t.thread, 0, {});
  t.script.enter(t.thread, 0, "f");
  t.script.enter(t.thread, 1, "g");
  t.script.stack(t.thread, 2, {"f", "g"});
  t.script.stack(t.thread, 2, {"g"}, 2);
  t.script.exit(t.thread, 3);
  t.script.exit(t.thread, 4);
  CHECK(t.result() == "f 1:2[g 1:2]");
}

TEST_CASE("STACK that contradicts is a finding, and what holds from then on") {
  OneThread t;
  t.script.stack(t.thread, 0, {});
  t.script.enter(t.thread, 0, "f");
  t.script.enter(t.thread, 1, "g");
  t.script.stack(t.thread, 2, {"f", "h"});
  t.script.exit(t.thread, 3);
  t.script.exit(t.thread, 4);
  CHECK(t.result() == "f 1:2[g 1:1 h 1:1] resyncs=1 exit_lost=1 entry_lost=1 !S1");
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

TEST_CASE("the first STACK opens what was entered before") {
  OneThread t;
  t.script.stack(t.thread, 5, {"main", "f"});
  t.script.exit(t.thread, 7);
  t.script.exit(t.thread, 8);
  CHECK(t.result() == "main 1:1[f 1:2] entry_lost=2");
}

namespace {

// A process that forked another one, which is replayed too.
struct ForkScript {
  RecordScript script;
  ThreadIndex parent = script.program(100, "parent");
  ThreadIndex child = script.program(200, "child", ARCTRACE_ORIGIN_FORK);

  ForkScript() {
    Process& process = *script.definitions.mutable_process(1);
    process.parent_id = script.definitions.processes()[0].id;
    script.stack(parent, 0, {});
    script.enter(parent, 0, "main");
    script.enter(parent, 10, "outer");
  }
  std::string tree_of_child(ReplayOptions options = {}) {
    Replay replay(script.definitions, nullptr, options);
    script.replay(replay);
    const ThreadTree& tree = replay.threads().back();
    CHECK(tree.thread == child);
    CHECK(replay.tree()[tree.root].cum_ns ==
          static_cast<uint64_t>(tree.stop_ns - tree.start_ns));
    std::string text = tree_text(replay, tree.root);
    for (const Finding& finding : replay.findings()) text += " !" + finding.rule;
    return text;
  }
};

}  // namespace

TEST_CASE("a fork child begins in the frames of its parent, at the fork") {
  ForkScript f;
  f.script.enter(f.parent, 20, "fork");
  f.script.exit(f.parent, 25);
  f.script.exit(f.parent, 26);
  f.script.enter(f.parent, 27, "wait");
  f.script.stack(f.child, 30, {});
  f.script.exit_named(f.child, 30, "fork");
  f.script.enter(f.child, 31, "work");
  f.script.stack(f.child, 35, {"work"});
  f.script.exit(f.child, 40);
  f.script.exit_named(f.child, 42, "outer");
  f.script.exit_named(f.child, 45, "main");
  f.script.text(f.child, 50, "the end");
  const char* expected = "main 0:3[outer 0:3[fork 0:10 work 1:9]]";
  CHECK(f.tree_of_child() == expected);
  ReplayOptions only_child;
  only_child.wants_thread = [&](ThreadIndex thread) { return thread == f.child; };
  CHECK(f.tree_of_child(only_child) == expected);
}

TEST_CASE("without a recorded fork a child begins where its parent's one thread is") {
  ForkScript f;
  f.script.stack(f.child, 30, {});
  f.script.enter(f.child, 31, "work");
  f.script.exit(f.child, 40);
  f.script.enter(f.child, 41, "outer");
  f.script.exit(f.child, 43);
  SUBCASE("and stays there") {
    CHECK(f.tree_of_child() == "main 0:0[outer 0:2[outer 1:2 work 1:9]]");
  }
  SUBCASE("an exit of a frame further out leaves those inside too") {
    f.script.exit_named(f.child, 50, "main");
    f.script.text(f.child, 60, "the end");
    CHECK(f.tree_of_child() == "main 0:0[outer 0:9[outer 1:2 work 1:9]]");
  }
  SUBCASE("an exit of another function is an orphan") {
    f.script.exit_named(f.child, 50, "other");
    CHECK(f.tree_of_child() == "main 0:0[outer 0:9[outer 1:2 work 1:9]]");
  }
}

TEST_CASE("a fork child's first STACK is inherited: no calls of its own") {
  OneThread t(ARCTRACE_ORIGIN_FORK);
  t.script.stack(t.thread, 5, {"main", "f"});
  t.script.exit(t.thread, 7);
  t.script.enter(t.thread, 7, "f");
  t.script.exit(t.thread, 8);
  t.script.exit(t.thread, 8);
  CHECK(t.result() == "main 0:0[f 1:3] inherited=2");
}

TEST_CASE("a STACK that is cut short leaves unknown frames, which later ones name") {
  OneThread t;
  t.script.stack(t.thread, 0, {"k"}, 4);
  t.script.exit(t.thread, 2);
  t.script.exit(t.thread, 3);
  t.script.stack(t.thread, 4, {"g"}, 2);
  t.script.exit(t.thread, 6);
  t.script.exit(t.thread, 7);
  CHECK(t.result() == "[unknown] 1:3[g 1:2 k 1:2] resyncs=1 exit_lost=1 entry_lost=5");
}

TEST_CASE("STACK of billions of frames costs nothing") {
  OneThread t;
  for (int i = 0; i < 1000; ++i) {
    t.script.stack(t.thread, i, {}, UINT32_MAX);
    t.script.lost(t.thread, i, 1);
    t.script.stack(t.thread, i, {});
    t.script.lost(t.thread, i, 1);
  }
  t.script.stack(t.thread, 1000, {"f"}, UINT32_MAX);
  t.script.unwind(t.thread, 1001, UINT32_MAX);
  Replay replay(t.script.definitions, nullptr);
  t.script.replay(replay);
  CHECK(replay.totals().open == 0);
  CHECK(replay.finding_count() == 0);
  CHECK(replay.tree().size() < 10);
}

TEST_CASE("vfork: the child's frames are unwound") {
  OneThread t;
  t.script.stack(t.thread, 0, {});
  t.script.enter(t.thread, 0, "main");
  t.script.enter(t.thread, 1, "spawn");
  t.script.vfork_begin(t.thread, 2);
  t.script.enter(t.thread, 3, "exec");
  t.script.enter(t.thread, 4, "path");
  t.script.vfork_end(t.thread, 6, 101);
  t.script.stack(t.thread, 6, {"main", "spawn"});
  t.script.exit(t.thread, 7);
  t.script.exit(t.thread, 9);
  CHECK(t.result() == "main 1:3[spawn 1:3[exec 1:1[path 1:2]]] unwound=2");
}

TEST_CASE("vfork: what the child left, the parent is still in") {
  OneThread t;
  t.script.stack(t.thread, 0, {});
  t.script.enter(t.thread, 0, "main");
  t.script.enter(t.thread, 1, "spawn");
  t.script.vfork_begin(t.thread, 2);
  t.script.exit(t.thread, 3);
  t.script.enter(t.thread, 4, "other");
  t.script.vfork_end(t.thread, 6, 101);
  t.script.stack(t.thread, 6, {"main", "spawn"});
  t.script.exit(t.thread, 8);
  t.script.exit(t.thread, 9);
  CHECK(t.result() == "main 1:3[other 1:2 spawn 1:4] unwound=1");
}

TEST_CASE("vfork children that vfork") {
  OneThread t;
  t.script.stack(t.thread, 0, {});
  t.script.enter(t.thread, 0, "main");
  t.script.vfork_begin(t.thread, 0);
  t.script.enter(t.thread, 1, "a");
  t.script.vfork_begin(t.thread, 1);
  t.script.exit(t.thread, 2);
  t.script.exit(t.thread, 3);
  t.script.vfork_end(t.thread, 4, 102);
  t.script.stack(t.thread, 4, {"main", "a"});
  t.script.vfork_end(t.thread, 5, 101);
  t.script.stack(t.thread, 5, {"main"});
  t.script.exit(t.thread, 6);
  CHECK(t.result() == "main 1:3[a 1:2] unwound=1");
}

TEST_CASE("VFORK_END without its beginning") {
  OneThread t;
  t.script.stack(t.thread, 0, {});
  t.script.enter(t.thread, 0, "main");
  t.script.vfork_end(t.thread, 1, 101);
  t.script.stack(t.thread, 1, {"main", "f"});
  CHECK(t.result() == "main 1:1[f 1:0] resyncs=1 entry_lost=1 open=2 !S3");
}

TEST_CASE("endless VFORK_BEGIN and nothing else") {
  OneThread t;
  for (int i = 0; i < 10'000; ++i) t.script.vfork_begin(t.thread, i);
  for (int i = 0; i < 10'000; ++i) t.script.vfork_end(t.thread, i, 1);
  Replay replay(t.script.definitions, nullptr);
  t.script.replay(replay);
  CHECK(replay.threads().size() == 1);
}

TEST_CASE("frames open at the end stay open") {
  OneThread t;
  t.script.enter(t.thread, 0, "main");
  t.script.enter(t.thread, 4, "f");
  t.script.text(t.thread, 9, "last words");
  Replay replay(t.script.definitions, nullptr);
  t.script.replay(replay);
  const CallTree& tree = replay.tree();
  const NodeIndex main = tree[replay.threads()[0].root].first_child;
  CHECK(tree.marks(main).open == 1);
  CHECK(tree.marks(tree[main].first_child).open == 1);
  CHECK(tree[main].cum_ns == 9);
}

TEST_CASE("definitions and the kernel's records are no part of the stack") {
  OneThread t;
  t.script.add(t.thread, 0, ARCTRACE_TYPE_THREAD);
  t.script.enter(t.thread, 10, "f");
  t.script.exit(t.thread, 12);
  t.script.add(t.thread, 20, 64);
  t.script.add(t.thread, 20, ARCTRACE_TYPE_PROCESS_END);
  CHECK(t.result() == "f 1:2");
}

TEST_CASE("threads do not mix") {
  RecordScript script;
  const ThreadIndex a = script.program(100, "a");
  const ThreadIndex b = script.thread(script.definitions.thread(a)->process, 101);
  script.enter(a, 0, "f");
  script.enter(b, 1, "g");
  script.exit(a, 2);
  script.exit(b, 4);
  Replay replay(script.definitions, nullptr);
  script.replay(replay);
  REQUIRE(replay.threads().size() == 2);
  CHECK(tree_text(replay, replay.threads()[0].root) == "f 1:2");
  CHECK(tree_text(replay, replay.threads()[1].root) == "g 1:3");
}

TEST_CASE("a thread of which only a loss is known is in the report") {
  RecordScript script;
  const ThreadIndex a = script.program(100, "a");
  script.lost(a, 5, 9, ARCTRACE_LOST_RESIDUAL);
  Replay replay(script.definitions, nullptr);
  script.replay(replay);
  REQUIRE(replay.threads().size() == 1);
  CHECK(replay.tree().marks(replay.threads()[0].root).lost_records == 9);
}

TEST_CASE("coroutines: each has a stack of its own, whose time stands still meanwhile") {
  OneThread one;
  RecordScript& script = one.script;
  script.stack(one.thread, 0, {});
  script.enter(one.thread, 0, "main");
  script.coroutine(one.thread, 10, 1, {}, 0);
  script.enter(one.thread, 11, "f");
  script.coroutine(one.thread, 15, 2, {}, 0);
  script.enter(one.thread, 15, "g");
  script.coroutine(one.thread, 18, 1, {}, 1);  // none of its frames is listed
  script.exit(one.thread, 20);
  script.coroutine(one.thread, 21, 0, {"main"}, 1);
  script.exit(one.thread, 25);
  script.coroutine(one.thread, 26, 2, {"g"}, 1);
  script.exit(one.thread, 30);
  CHECK(one.result() == "coroutine 1 1:2[f 1:6] coroutine 2 1:0[g 1:7] main 1:14");
}

TEST_CASE("coroutines: the frames of all are open at the end") {
  OneThread one;
  RecordScript& script = one.script;
  script.stack(one.thread, 0, {});
  script.enter(one.thread, 0, "main");
  script.coroutine(one.thread, 1, 7, {}, 0);
  script.enter(one.thread, 1, "f");
  script.coroutine(one.thread, 2, 0, {}, 1);
  script.text(one.thread, 5, "the end");
  CHECK(one.result() == "coroutine 7 1:0[f 1:1] main 1:4 open=2");
}

TEST_CASE("coroutines: after a loss each stack is what its record says") {
  OneThread one;
  RecordScript& script = one.script;
  script.stack(one.thread, 0, {});
  script.coroutine(one.thread, 0, 1, {}, 0);
  script.enter(one.thread, 0, "f");
  script.coroutine(one.thread, 4, 0, {}, 0);
  script.lost(one.thread, 6, 3);
  // A STACK may be a coroutine's.
  script.add(one.thread, 6, ARCTRACE_TYPE_STACK, stack_body({script.key("h")}, 1).u32(2));
  script.exit(one.thread, 8);
  script.coroutine(one.thread, 8, 1, {"g"}, 1);
  script.exit(one.thread, 9);
  CHECK(one.result() ==
        "coroutine 1 1:0[f 1:4 g 1:1] coroutine 2 1:0[h 1:2] resyncs=2 exit_lost=1 "
        "entry_lost=2");
}

TEST_CASE(
    "coroutines: what contradicts a stack is found, and orphans stay what they are") {
  OneThread one;
  RecordScript& script = one.script;
  script.stack(one.thread, 0, {});
  script.coroutine(one.thread, 0, 1, {}, 0);
  script.enter(one.thread, 0, "f");
  script.coroutine(one.thread, 1, 0, {}, 0);
  script.coroutine(one.thread, 2, 1, {"g"}, 1);
  script.exit(one.thread, 3);
  script.exit_named(one.thread, 4, "before");
  CHECK(one.result() ==
        "coroutine 1 1:1[f 1:1 g 1:1] orphans=1 resyncs=1 exit_lost=1 entry_lost=1 !S1");
}
