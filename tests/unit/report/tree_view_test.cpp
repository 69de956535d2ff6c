// The view `tree`: the call tree of each thread, process, or all.
#include <doctest/doctest.h>

#include <sstream>

#include "reader/report/views.hpp"
#include "tests/unit/report/viewed.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

TEST_CASE("IBM's treetest as a tree") {
  const RecordScript script = treetest();
  Viewed viewed(script);
  CHECK(viewed.text("tree") == R"(
 Lv  RL       Calls   %Self  %Total         Self        Total  Name
  0   0           1       -     100            -       100 us  treetest 7/7
  1   1           1       -     100            -       100 us    main
  2   1           1       -    70.0            -      70.0 us      mainB
  3   1           1    40.0    40.0      40.0 us      40.0 us        mainBB
  3   1           1    30.0    30.0      30.0 us      30.0 us        mainBA
  2   1           1       -    30.0            -      30.0 us      mainA
  3   1           1    20.0    20.0      20.0 us      20.0 us        mainAB
  3   1           1    10.0    10.0      10.0 us      10.0 us        mainAA
)");
}

TEST_CASE("trees without a call that passes the filters are counted, not shown") {
  RecordScript script;
  const ThreadIndex one = script.program(7, "one");
  script.enter(one, 0, "main");
  script.enter(one, 10, "f");
  script.exit(one, 40);
  script.exit(one, 100);
  for (const uint32_t pid : {8u, 9u}) {
    const ThreadIndex other = script.program(pid, "other");
    script.stack(other, 0, {});
    script.enter(other, 10, "main");
    script.lost(other, 50, 3);
    script.stack(other, 50, {"main"});
    script.exit(other, 100);
  }
  Viewed viewed(script);
  viewed.replay.filter.only = {"f"};
  CHECK(viewed.text("tree") == R"(
 Lv  RL       Calls   %Self  %Total         Self        Total  Name
  0   0           1    70.0     100        70 ns       100 ns  one 7/7
  1   1           1    30.0    30.0        30 ns        30 ns    f

2 threads have no call that passes the filters
)");
  const std::string by_process = viewed.text("tree", Grouping::kProcess);
  CHECK(by_process.find("other") == std::string::npos);
  CHECK(by_process.ends_with("\n2 processes have no call that passes the filters\n"));
  CHECK(viewed.text("flat", Grouping::kThread).find("other") == std::string::npos);
  CHECK(viewed.json("tree").at("threads").size() == 3);
  CHECK(viewed.text("log-rt", Grouping::kThread).find("other") != std::string::npos);
  viewed.replay.filter.only = {};
  CHECK(viewed.text("tree").find("other 9/9") != std::string::npos);
  CHECK(viewed.text("tree").find("filters") == std::string::npos);
}

TEST_CASE("the tree's order, limit and least share") {
  const RecordScript script = treetest();
  Viewed viewed(script);
  viewed.settings.options.sort = SortKey::kName;
  viewed.settings.options.limit = 3;
  CHECK(viewed.text("tree") == R"(
 Lv  RL       Calls   %Self  %Total         Self        Total  Name
  0   0           1       -     100            -       100 us  treetest 7/7
  1   1           1       -     100            -       100 us    main
  2   1           1       -    30.0            -      30.0 us      mainA
  (3 rows not shown)
)");
  viewed.settings.options.limit = UINT64_MAX;
  viewed.settings.options.min_percent = 35;
  CHECK(viewed.text("tree") == R"(
 Lv  RL       Calls   %Self  %Total         Self        Total  Name
  0   0           1       -     100            -       100 us  treetest 7/7
  1   1           1       -     100            -       100 us    main
  2   1           1       -    70.0            -      70.0 us      mainB
  3   1           1    40.0    40.0      40.0 us      40.0 us        mainBB
  (2 rows not shown)
)");
}

TEST_CASE("the tree as JSON") {
  const RecordScript script = treetest();
  Viewed viewed(script);
  const Json json = viewed.json("tree");
  const Json& thread = json.at("threads").at(0);
  CHECK(thread.at("pid") == 7);
  CHECK(thread.at("tid") == 7);
  CHECK(thread.at("name") == "treetest");
  const Json& main = thread.at("root").at("children").at(0);
  CHECK(main.at("name") == "main");
  CHECK(main.at("calls") == 1);
  CHECK(main.at("base_ns") == 0);
  CHECK(main.at("cum_ns") == 100'000);
  CHECK(main.at("children").size() == 2);
  CHECK(main.at("children").at(0).at("children").at(1).at("name") == "mainBA");
  CHECK(main.at("children").at(0).at("children").at(1).at("cum_ns") == 30'000);
}

TEST_CASE("trees of threads, of processes, of all") {
  RecordScript script;
  const ThreadIndex a = script.program(10, "one");
  const ThreadIndex b =
      script.thread(script.definitions.thread(a)->process, 11, "helper");
  const ThreadIndex c = script.program(20, "two");
  for (const ThreadIndex thread : {a, b, c}) script.enter(thread, 0, "f");
  for (const ThreadIndex thread : {a, b, c}) script.exit(thread, 10);
  Viewed viewed(script);

  const Json threads = viewed.json("tree").at("threads");
  REQUIRE(threads.size() == 3);
  CHECK(threads.at(1).at("name") == "helper");
  CHECK(threads.at(1).at("tid") == 11);

  const Json processes = viewed.json("tree", Grouping::kProcess).at("processes");
  REQUIRE(processes.size() == 2);
  CHECK(processes.at(0).at("pid") == 10);
  CHECK(processes.at(0).at("threads") == 2);
  CHECK(processes.at(0).at("root").at("children").at(0).at("calls") == 2);
  CHECK(processes.at(0).at("root").at("cum_ns") == 20);

  const Json all = viewed.json("tree", Grouping::kAll).at("all");
  REQUIRE(all.size() == 1);
  CHECK(all.at(0).at("threads") == 3);
  CHECK(all.at(0).at("root").at("calls") == 3);
  CHECK(all.at(0).at("root").at("children").size() == 1);
  CHECK(viewed.text("tree", Grouping::kAll).find("  3 threads\n") != std::string::npos);
}

TEST_CASE("recursion levels, and what was not as usual") {
  RecordScript script;
  const ThreadIndex t = script.program(10, "rec");
  script.enter(t, 0, "f");
  script.enter(t, 1, "g");
  script.enter(t, 2, "f");
  script.lost(t, 3, 12);
  script.unwind(t, 4, 2);
  Viewed viewed(script);
  const std::string text = viewed.text("tree");
  CHECK(text.find("  1   1           1    25.0     100         1 ns         4 ns    "
                  "f [open]\n") != std::string::npos);
  CHECK(text.find("g [unwound]\n") != std::string::npos);
  CHECK(text.find("  3   2           1") != std::string::npos);
  CHECK(text.find("f [unwound, records lost 12]\n") != std::string::npos);
  const Json json = viewed.json("tree");
  const Json& f = json.at("threads").at(0).at("root").at("children").at(0);
  CHECK(f.at("marks") == Json({{"open", 1}}));
}

TEST_CASE("hostile names stay in their line, and JSON stays valid") {
  RecordScript script;
  const ThreadIndex t = script.program(10, "evil\x1b[2J\nname");
  script.enter(t, 0, "f\x1b]0;x\x07\xff");
  script.exit(t, 1);
  Viewed viewed(script);
  const std::string text = viewed.text("tree");
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(std::count(text.begin(), text.end(), '\n') == 4);
  CHECK(viewed.json("tree").at("threads").size() == 1);
}

TEST_CASE("names are cut on a terminal, in full elsewhere") {
  RecordScript script;
  const ThreadIndex t = script.program(10, "p");
  const std::string name = "ns::" + std::string(200, 'x') + "::end";
  script.enter(t, 0, name);
  script.exit(t, 1);
  Viewed viewed(script);
  CHECK(viewed.text("tree").find(name) != std::string::npos);
  viewed.settings.options.style.width = 100;
  const std::string text = viewed.text("tree");
  CHECK(text.find(name) == std::string::npos);
  CHECK(text.find("…") != std::string::npos);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) CHECK(columns_of(line) <= 100);
}

TEST_CASE("100,000 frames deep, in text, JSON and log-rt") {
  RecordScript script;
  const ThreadIndex t = script.program(10, "deep");
  constexpr int kDepth = 100'000;
  for (int i = 0; i < kDepth; ++i) script.enter(t, i, i % 2 == 0 ? "even" : "odd");
  Viewed viewed(script);
  const std::string text = viewed.text("tree");
  CHECK(std::count(text.begin(), text.end(), '\n') == kDepth + 3);
  CHECK(text.find("\n99999 50000 ") != std::string::npos);
  // No line is as long as the tree is deep.
  CHECK(text.size() < size_t{kDepth} * 300);

  const Json json = viewed.json("tree");
  const Json* node = &json.at("threads").at(0).at("root");
  int depth = 0;
  while (!node->at("children").empty()) {
    node = &node->at("children").at(0);
    ++depth;
  }
  // Deeper calls are rows, because parsers recurse.
  CHECK(depth == 200);
  const Json& deeper = json.at("threads").at(0).at("deeper");
  CHECK(deeper.size() == kDepth - 200);
  CHECK(deeper.at(0).at("parent") == node->at("id"));
  CHECK(deeper.back().at("level") == kDepth);

  const std::string log_rt = viewed.text("log-rt", Grouping::kAll);
  CHECK(std::count(log_rt.begin(), log_rt.end(), '\n') == kDepth + 2);
}

TEST_CASE("writing stops when nothing more is wanted") {
  const RecordScript script = treetest();
  Viewed viewed(script);
  const std::unique_ptr<View> view = make_tree_view(viewed.settings);
  Replay replay(script.definitions, nullptr);
  script.replay(replay);
  int pieces = 0;
  CHECK(view->write_text(replay, [&](std::string_view) { return ++pieces < 3; }).ok());
  CHECK(pieces == 3);
}
