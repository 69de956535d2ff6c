// The stacks of coroutines, of which a thread may have many (READ-10).
#include <doctest/doctest.h>

#include "tests/support/one_thread.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

// A thread in main, which began when the recording did.
struct InMain : OneThread {
  InMain() {
    script.stack(thread, 0, {});
    script.enter(thread, 0, "main");
  }
};

}  // namespace

TEST_CASE("coroutines: each has a stack of its own, whose time stands still meanwhile") {
  InMain one;
  RecordScript& script = one.script;
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
  InMain one;
  RecordScript& script = one.script;
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
