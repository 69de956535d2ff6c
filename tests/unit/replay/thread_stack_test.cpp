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

TEST_CASE("after a gap in the blocks, STACK gives the stack") {
  OneThread t;
  t.script.stack(t.thread, 0, {});
  t.script.enter(t.thread, 0, "main");
  t.script.enter(t.thread, 1, "f");
  t.script.stack(t.thread, 10, {"main"}).after_gap = true;
  t.script.exit(t.thread, 12);
  CHECK(t.result() == "main 1:3[f 1:9] resyncs=1 exit_lost=1");
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
  // The collector's word is no record of the thread.
  CHECK(thread.stop_ns == 2);
}

TEST_CASE("the first STACK opens what was entered before") {
  OneThread t;
  t.script.stack(t.thread, 5, {"main", "f"});
  t.script.exit(t.thread, 7);
  t.script.exit(t.thread, 8);
  CHECK(t.result() == "main 1:1[f 1:2] entry_lost=2");
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
