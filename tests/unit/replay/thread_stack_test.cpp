// The stack machine, rule by rule (reader/replay/thread_stack.hpp).
#include <doctest/doctest.h>

#include <functional>

#include "tests/support/one_thread.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

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
  const uint64_t all = replay.tree()[root].total_ns;
  CHECK(all == 100 * 100);
  const auto share = [&](std::string_view path) {
    const CallNode& node = node_at(replay, root, path);
    CHECK(node.calls == 100);
    CHECK(node.total_ns * 100 % all == 0);
    return node.total_ns * 100 / all;
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
          static_cast<int64_t>(replay.tree()[tree.root].total_ns));
    return node_at(replay, tree.root, "f").total_ns;
  };
  CHECK(duration(killed) == 290);
  CHECK(duration(exits) == 380);
  CHECK(duration(lives) == 490);
  CHECK(duration(unseen) == 0);
}

TEST_CASE("a copy tells nothing of the time after it began, but what threads wrote") {
  RecordScript script;
  const ThreadIndex quiet = script.program(1, "quiet");
  const ThreadIndex busy = script.program(2, "busy");
  script.enter(quiet, 1000, "f");
  script.enter(busy, 1000, "g");
  script.text(busy, 2500, "after the copy began");
  script.text(kNoIndex, 9000, "the copy ends");
  script.definitions.set_known_until(2000);
  Replay replay(script.definitions, nullptr);
  script.replay(replay);
  REQUIRE(replay.threads().size() == 2);
  CHECK(replay.tree()[replay.threads()[0].root].total_ns == 1000);
  CHECK(replay.tree()[replay.threads()[1].root].total_ns == 1500);
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
  CHECK(replay.tree()[replay.threads()[0].root].total_ns == 99'999);
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
  t.script.exit_named(t.thread, 2, "g");  // the writer has searched: another g
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
  // f50 is at 50 only, because the one at 200 was popped with f120.
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
  t.script.exit_named(t.thread, 1032, "leaf");  // leaf was entered in place of a rec
  for (int i = 1027; i > 1000; --i) t.script.exit_named(t.thread, 1033, "rec");
  Replay replay(t.script.definitions, nullptr);
  t.script.replay(replay);
  CHECK(replay.totals().orphans == 0);
  CHECK(replay.totals().open == 1000);
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

TEST_CASE("the first STACK opens what was entered before") {
  OneThread t;
  t.script.stack(t.thread, 5, {"main", "f"});
  t.script.exit(t.thread, 7);
  t.script.exit(t.thread, 8);
  CHECK(t.result() == "main 1:1[f 1:2] entry_lost=2");
}

TEST_CASE("frames in which a joined thread begins were entered before, and end unseen") {
  OneThread t;
  // In a block of several writers this STACK might come after a gap.
  t.script.opening_stack(t.thread, 5, {"main", "f", "g"}).after_gap = true;
  t.script.enter(t.thread, 6, "h");
  t.script.exit(t.thread, 7);
  t.script.exit(t.thread, 8);        // g has a hook at its exit
  t.script.unwind(t.thread, 10, 1);  // f has none
  t.script.enter(t.thread, 10, "i");
  t.script.exit(t.thread, 12);
  CHECK(t.result() == "main 1:0[f 1:2[g 1:2[h 1:1]] i 1:2] exit_lost=1 before=3 open=1");
}

TEST_CASE("frames with hooks in one that was found open are unwound as ever") {
  OneThread t;
  t.script.opening_stack(t.thread, 0, {"main", "f"});
  t.script.enter(t.thread, 1, "g");
  t.script.unwind(t.thread, 3, 2);
  t.script.enter(t.thread, 3, "h");
  t.script.exit(t.thread, 4);
  CHECK(t.result() ==
        "main 1:0[f 1:1[g 1:2] h 1:1] unwound=1 exit_lost=1 before=2 open=1");
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
  CHECK(tree[main].total_ns == 9);
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

TEST_CASE("exit handlers run in the thread that called exit") {
  RecordScript script;
  const ProcessIndex program = script.process(1, "/bin/program");
  const ThreadIndex main = script.thread(program, 1);
  const ThreadIndex other = script.thread(program, 2);
  Process& process = *script.definitions.mutable_process(program);
  process.exit_ns = 60;
  process.end_ns = 80;
  process.end_how = ARCTRACE_END_EXIT;
  script.enter(main, 10, "wait");
  script.enter(other, 20, "exit");
  const auto trees = [&] {
    Replay replay(script.definitions, nullptr);
    script.replay(replay);
    return tree_text(replay, replay.threads()[0].root) + ", " +
           tree_text(replay, replay.threads()[1].root);
  };
  script.text(main, 90, "the end of the recording");
  SUBCASE("which is another one") {
    process.end_writer = script.definitions.threads()[other].writer;
    CHECK(trees() == "wait 1:80, exit 1:40[[exit] 1:20]");
  }
  SUBCASE("which is the first one") {
    process.end_writer = script.definitions.threads()[main].writer;
    CHECK(trees() == "wait 1:50[[exit] 1:30], exit 1:60");
  }
}
