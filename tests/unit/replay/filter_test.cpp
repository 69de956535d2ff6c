// Filters: what is shown, and where the time of the rest counts.
#include <doctest/doctest.h>

#include "reader/replay/functions.hpp"
#include "tests/support/record_script.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

std::string replayed(const RecordScript& script, const ReplayFilter& filter) {
  ReplayOptions options;
  options.filter = filter;
  Replay replay(script.definitions, nullptr, options);
  script.replay(replay);
  std::string text;
  for (const ThreadTree& thread : replay.threads()) {
    const CallNode& root = replay.tree()[thread.root];
    CHECK(root.total_ns == static_cast<uint64_t>(thread.stop_ns - thread.start_ns));
    text += std::to_string(root.self_ns) + "[" + tree_text(replay, thread.root) + "]";
  }
  return text;
}

// main 0-100 calls f 10-40 (g 20-30) and g 50-90 (h 60-70).
RecordScript sample() {
  RecordScript s;
  const ThreadIndex t = s.program(1, "sample");
  s.enter(t, 0, "main");
  s.enter(t, 10, "f");
  s.enter(t, 20, "g");
  s.exit(t, 30);
  s.exit(t, 40);
  s.enter(t, 50, "g");
  s.enter(t, 60, "h");
  s.exit(t, 70);
  s.exit(t, 90);
  s.exit(t, 100);
  return s;
}

bool matches_any(const std::vector<std::string>& patterns, std::string_view name) {
  return NamePatterns(patterns).match(name);
}

}  // namespace

TEST_CASE("a name matches a pattern by its short forms, too") {
  const std::string name = "int app::sort<int>(std::vector<int>) [clone .constprop.0]";
  for (const char* pattern :
       {"app::sort", "app::*", "*sort", "app::sort<int>", "app::sort<*>",
        "app::sort<int>(std::vector<int>)", "int app::sort<int>", "re:^app::sort$",
        "re:sort", "re:^(int )?app::sort<int>\\("}) {
    CAPTURE(std::string(pattern));
    CHECK(matches_any({pattern}, name));
  }
  for (const char* pattern : {"sort", "app::sort<long>", "app", "re:^sort", "re:("}) {
    CAPTURE(std::string(pattern));
    CHECK_FALSE(matches_any({pattern}, name));
  }
}

TEST_CASE("a name matches a glob with its parameters or without") {
  CHECK(matches_any({"x", "f"}, "f(int)"));
  CHECK(matches_any({"f(*)"}, "f(int)"));
  CHECK(matches_any({"operator\\[]"}, "operator[](int)"));
  CHECK(matches_any({"[ef]*", "x"}, "f(int)"));
  CHECK_FALSE(matches_any({"[!ef]*"}, "f(int)"));
  CHECK_FALSE(matches_any({"f(", "int"}, "f(int)"));
  CHECK_FALSE(matches_any({}, "f(int)"));
  for (const char* glob : {"f", "f(int)", "f(int) [[]clone .part.0]"}) {
    CHECK(matches_any({glob}, "f(int) [clone .part.0]"));
  }
  CHECK(matches_any({"work"}, "work.isra.0"));
  CHECK(matches_any({"work.isra.0"}, "work.isra.0"));
  CHECK(matches_any({"Shop.serve"}, "Shop.serve_12"));  // OCaml
  CHECK(matches_any({"app.foo"}, "app.foo(int)"));      // D
  for (const char* name : {"Shop.serve_12", "main.work", "shop.serve"}) {
    CHECK_FALSE(matches_any({"Shop", "main", "shop"}, name));
  }
}

TEST_CASE("without filters") {
  CHECK(replayed(sample(), {}) == "0[main 1:30[f 1:20[g 1:10] g 1:30[h 1:10]]]");
}

TEST_CASE("only: the functions that match, and what they call") {
  ReplayFilter filter;
  filter.only = {"g"};
  CHECK(replayed(sample(), filter) == "50[g 2:40[h 1:10]]");
  filter.only = {"f", "h"};
  CHECK(replayed(sample(), filter) == "60[f 1:20[g 1:10] h 1:10]");
  filter.only = {"nothing"};
  CHECK(replayed(sample(), filter) == "100[]");
}

TEST_CASE("except: without the functions that match, and what they call") {
  ReplayFilter filter;
  filter.except = {"g"};
  CHECK(replayed(sample(), filter) == "0[main 1:70[f 1:30]]");
  filter.only = {"f"};
  CHECK(replayed(sample(), filter) == "70[f 1:30]");
}

TEST_CASE("depth counts shown frames") {
  ReplayFilter filter;
  filter.max_depth = 2;
  CHECK(replayed(sample(), filter) == "0[main 1:30[f 1:30 g 1:40]]");
  filter.only = {"g"};
  filter.max_depth = 1;
  CHECK(replayed(sample(), filter) == "50[g 2:50]");
  filter.max_depth = 0;
  CHECK(replayed(sample(), filter) == "100[]");
}

TEST_CASE("calls shorter than the minimum leave their time to their caller") {
  ReplayFilter filter;
  filter.min_duration_ns = 30;
  CHECK(replayed(sample(), filter) == "0[main 1:30[f 1:30 g 1:40]]");
  filter.min_duration_ns = 31;
  CHECK(replayed(sample(), filter) == "0[main 1:60[g 1:40]]");
  filter.min_duration_ns = 1000;
  CHECK(replayed(sample(), filter) == "100[]");
}

TEST_CASE("a frame that is open at the end has no duration to be too short") {
  RecordScript s;
  const ThreadIndex t = s.program(1, "sample");
  s.enter(t, 0, "main");
  s.enter(t, 10, "f");
  ReplayFilter filter;
  filter.min_duration_ns = 1000;
  CHECK(replayed(s, filter) == "0[main 1:10[f 1:0]]");
}

TEST_CASE("a time range counts the time in it, and the calls that overlap it") {
  ReplayFilter filter;
  filter.from_ns = 25;
  filter.until_ns = 55;
  CHECK(replayed(sample(), filter) == "0[main 1:10[f 1:10[g 1:5] g 1:5]]");
  filter.from_ns = 62;
  filter.until_ns = 64;
  CHECK(replayed(sample(), filter) == "0[main 1:0[g 1:0[h 1:2]]]");
  filter.from_ns = 95;
  filter.until_ns = INT64_MAX;
  CHECK(replayed(sample(), filter) == "0[main 1:5]");
  filter.from_ns = INT64_MIN;
  filter.until_ns = 15;
  CHECK(replayed(sample(), filter) == "0[main 1:10[f 1:5]]");
}

TEST_CASE("ranges that hold no record of the thread") {
  ReplayFilter filter;
  filter.from_ns = 1000;
  CHECK(replayed(sample(), filter).empty());
  filter.from_ns = -20;
  filter.until_ns = -10;
  CHECK(replayed(sample(), filter).empty());
}

TEST_CASE("a root that is adopted after the range is not known in it") {
  RecordScript s;
  const ThreadIndex t = s.program(1, "sample");
  s.enter(t, 0, "f");
  s.exit(t, 10);
  s.exit_named(t, 50, "main");
  ReplayFilter filter;
  filter.from_ns = 5;
  filter.until_ns = 20;
  CHECK(replayed(s, filter) == "10[f 1:5]");
  filter.from_ns = 50;
  filter.until_ns = 60;
  CHECK(replayed(s, filter) == "0[main 1:0]");
}

TEST_CASE("vfork in a short call: what goes on elsewhere is kept") {
  RecordScript s;
  const ThreadIndex t = s.program(1, "sample");
  s.stack(t, 0, {});
  s.enter(t, 0, "main");
  s.enter(t, 1, "spawn");
  s.vfork_begin(t, 2);
  s.exit(t, 3);
  s.vfork_end(t, 6, 101);
  s.exit(t, 7);
  s.exit(t, 100);
  ReplayFilter filter;
  filter.min_duration_ns = 50;
  CHECK(replayed(s, filter) == "0[main 1:97[spawn 1:3]]");
}
