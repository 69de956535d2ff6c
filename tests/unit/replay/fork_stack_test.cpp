// The stacks of processes that fork and vfork made.
#include <doctest/doctest.h>

#include "tests/support/one_thread.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

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
    CHECK(replay.tree()[tree.root].total_ns ==
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

TEST_CASE("a child that records late begins in the frames of the time of its fork") {
  ForkScript f;
  f.script.definitions.mutable_process(1)->forked_ns = 20;
  f.script.exit(f.parent, 25);
  f.script.enter(f.parent, 27, "later");
  const auto work = [&] {
    f.script.stack(f.child, 30, {});
    f.script.enter(f.child, 31, "work");
    f.script.exit(f.child, 40);
    f.script.exit_named(f.child, 42, "outer");
    f.script.text(f.child, 50, "the end");
  };
  SUBCASE("of the parent's one thread") {
    work();
    CHECK(f.tree_of_child() == "main 0:8[outer 0:13[work 1:9]]");
    ReplayOptions only_child;
    only_child.wants_thread = [&](ThreadIndex thread) { return thread == f.child; };
    CHECK(f.tree_of_child(only_child) == "main 0:8[outer 0:13[work 1:9]]");
  }
  SUBCASE("of the thread that forked, whatever the others do") {
    const ThreadIndex other = f.script.thread(0, 101, "other");
    f.script.enter(other, 5, "elsewhere");
    f.script.enter(other, 6, "fork");
    f.script.definitions.mutable_process(1)->forker =
        f.script.definitions.threads()[f.parent].writer;
    work();
    ReplayOptions only_child;
    only_child.wants_thread = [&](ThreadIndex thread) { return thread == f.child; };
    CHECK(f.tree_of_child(only_child) == "main 0:8[outer 0:13[work 1:9]]");
  }
  SUBCASE("without records of its own, too") {
    f.script.exit(f.parent, 60);
    CHECK(f.tree_of_child() == "main 0:0[outer 0:40]");
  }
}

TEST_CASE("what a child says of the frames in which it begins counts") {
  ForkScript f;
  f.script.definitions.mutable_process(1)->forked_ns = 20;
  auto& told = f.script.definitions.mutable_process(1)->inherited;
  const auto begin = [&] {
    f.script.text(f.parent, 26, "a record");
    f.script.stack(f.child, 30, {});
    f.script.enter(f.child, 31, "work");
    f.script.exit(f.child, 40);
  };
  SUBCASE("not what its parent's records say") {
    told = {f.script.key("main"), f.script.key("other")};
    begin();
    f.script.text(f.child, 45, "the end");
    CHECK(f.tree_of_child() == "main 0:0[other 0:16[work 1:9]]");
  }
  SUBCASE("also if it is none") {
    told.emplace();
    begin();
    CHECK(f.tree_of_child() == "work 1:9");
  }
  SUBCASE("of those further out it may know no more than that there are some") {
    told = {0, f.script.key("other")};
    begin();
    CHECK(f.tree_of_child() == "[unknown] 0:0[other 0:11[work 1:9]]");
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

TEST_CASE("VFORK_END whose beginning was lost before a STACK of the child's") {
  OneThread t;
  t.script.stack(t.thread, 0, {});
  t.script.enter(t.thread, 0, "main");
  t.script.lost(t.thread, 2, 2);  // VFORK_BEGIN, and an ENTER of the child
  t.script.stack(t.thread, 2, {"main", "child"});
  t.script.enter(t.thread, 3, "exec");
  t.script.vfork_end(t.thread, 4, 101);
  t.script.stack(t.thread, 5, {"main"});
  t.script.exit(t.thread, 6);
  CHECK(t.result() == "main 1:3[child 1:1[exec 1:2]] resyncs=2 exit_lost=2 entry_lost=1");
}

TEST_CASE("endless VFORK_BEGIN and nothing else") {
  OneThread t;
  for (int i = 0; i < 10'000; ++i) t.script.vfork_begin(t.thread, i);
  for (int i = 0; i < 10'000; ++i) t.script.vfork_end(t.thread, i, 1);
  Replay replay(t.script.definitions, nullptr);
  t.script.replay(replay);
  CHECK(replay.threads().size() == 1);
}

TEST_CASE(
    "in overwrite mode a child begins in its parent's frames if its first record is "
    "there") {
  ForkScript f;
  f.script.definitions.mutable_process(1)->forked_ns = 20;
  f.script.definitions.mutable_thread(f.child)->start_ns = 30;
  f.script.exit(f.parent, 25);
  ReplayOptions options;
  options.mode = ARCTRACE_MODE_OVERWRITE;
  SUBCASE("in a block of several writers, where every STACK might follow a gap") {
    f.script.stack(f.child, 30, {}).after_gap = true;
    f.script.enter(f.child, 31, "work");
    f.script.exit(f.child, 40);
    CHECK(f.tree_of_child(options) == "main 0:0[outer 0:11[work 1:9]]");
  }
  SUBCASE("else in no frame") {
    f.script.stack(f.child, 33, {}).after_gap = true;
    f.script.enter(f.child, 34, "work");
    f.script.exit(f.child, 40);
    CHECK(f.tree_of_child(options) == "work 1:6");
  }
}
