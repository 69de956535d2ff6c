// The view `summary`: what is on the first screen.
#include "reader/report/summary_view.hpp"

#include <algorithm>
#include <csignal>

#include "reader/report/summary_lines.hpp"
#include "tests/unit/report/viewed.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

TEST_CASE("summary: what the time was spent on, and where") {
  const RecordScript script = treetest();
  Viewed viewed(script);
  CHECK(viewed.text("summary") == R"(100.000 us, 1 process, 1 thread

         Time       %     Calls  Spent on
   100.000 us  100.00         7  functions of no module

         Self       %     Calls         Avg         Max  Hottest functions
    40.000 us   40.00         1   40.000 us   40.000 us  mainBB
    30.000 us   30.00         1   30.000 us   30.000 us  mainBA
    20.000 us   20.00         1   20.000 us   20.000 us  mainAB
    10.000 us   10.00         1   10.000 us   10.000 us  mainAA

         Self       %  Hottest paths
    40.000 us   40.00  main > mainB > mainBB
    30.000 us   30.00  main > mainB > mainBA
    20.000 us   20.00  main > mainA > mainAB
    10.000 us   10.00  main > mainA > mainAA

time on the CPU and waiting are not told apart: record with --kernel
more:  arctrace report --view=tree
       arctrace graph 'mainBB'
       arctrace report --view=slowest -F 'mainBB'
)");
  const Json json = viewed.json("summary");
  CHECK(json.at("wall_ns") == 100'000);
  CHECK(json.at("thread_ns") == 100'000);
  CHECK(json.at("parts").at(0).at("base_ns") == 100'000);
  CHECK(json.at("functions").size() == 7);
  CHECK(json.at("functions").at(0).at("max_ns") == 100'000);
  CHECK(json.at("threads").at(0).at("root").at("children").at(0).at("name") == "main");
}

TEST_CASE("summary: like threads are one row") {
  RecordScript script;
  const ProcessIndex process = script.process(7, "/bin/server");
  for (uint32_t tid = 7; tid < 17; ++tid) {
    const ThreadIndex t = script.thread(process, tid, tid == 7 ? "server" : "worker");
    script.enter(t, 0, "serve");
    script.exit(t, 100);
  }
  Viewed viewed(script);
  const std::string text = viewed.text("summary");
  CHECK(text.find("900 ns   90.00         9  server, thread worker  serve 900 ns\n") !=
        std::string::npos);
  CHECK(text.find("100 ns   10.00         1  server  serve 100 ns\n") !=
        std::string::npos);
}

TEST_CASE("summary: a program that was killed") {
  RecordScript script;
  const ProcessIndex process = script.process(7, "/bin/server");
  const ThreadIndex t = script.thread(process, 7, "server");
  script.enter(t, 0, "main");
  script.enter(t, 10, "read");
  script.exit(t, 20);
  script.enter(t, 100, "bad");
  const ThreadIndex other = script.thread(process, 8, "worker");
  script.enter(other, 100, "wait");
  Viewed viewed(script);
  Session session;
  session.child_wait_status = SIGSEGV;
  viewed.settings.session = &session;
  const std::string text = viewed.text("summary");
  CHECK(text.find("killed by signal 11 (Segmentation fault)") != std::string::npos);
  CHECK(text.find("which thread got it is not recorded") != std::string::npos);
  CHECK(text.find("server 7/7: main > bad; last call: read, ended 80 ns before\n") !=
        std::string::npos);
  CHECK(text.find("worker 7/8: wait\n") != std::string::npos);
  session.child_wait_status = 0;
  CHECK(viewed.text("summary").find("exit 0") != std::string::npos);
  CHECK(viewed.text("summary").find("Where it was") == std::string::npos);
}

TEST_CASE("summary: functions that a filter hides are recorded") {
  const RecordScript script = treetest();
  constexpr const char* kHint = "functions of treetest itself are not recorded";
  Viewed viewed(script);
  viewed.replay.filter.only = {"nosuch"};
  CHECK(viewed.text("summary").find(kHint) == std::string::npos);

  RecordScript without;
  without.text(without.program(7, "treetest"), 10, "a text");
  Viewed viewed_without(without);
  CHECK(viewed_without.text("summary").find(kHint) != std::string::npos);
  // Those may be among what is missing.
  Session session;
  viewed_without.settings.session = &session;
  CHECK(viewed_without.text("summary").find(kHint) == std::string::npos);
  session.finished = true;
  CHECK(viewed_without.text("summary").find(kHint) != std::string::npos);
  Summary summary;
  summary.overwritten = 1;
  viewed_without.settings.summary = &summary;
  CHECK(viewed_without.text("summary").find(kHint) == std::string::npos);
  viewed_without.settings.summary = nullptr;
  // Other threads may have called some.
  viewed_without.replay.wants_thread = [](ThreadIndex) { return true; };
  CHECK(viewed_without.text("summary").find(kHint) == std::string::npos);
}

TEST_CASE("summary: a thread whose end was not seen, and what it was in") {
  RecordScript script;
  const ProcessIndex process = script.process(7, "/bin/server");
  const ThreadIndex main = script.thread(process, 7, "server");
  script.enter(main, 0, "main");
  const ThreadIndex left = script.thread(process, 8, "worker");
  const ThreadIndex ended = script.thread(process, 9, "worker");
  for (const ThreadIndex t : {left, ended}) {
    script.definitions.mutable_thread(t)->alive_ns = 300;
    script.definitions.mutable_thread(t)->end_ns = 700;
  }
  script.enter(left, 100, "work");
  script.enter(ended, 100, "work");
  script.enter(left, 200, "leave");
  script.exit(ended, 200);
  script.exit(main, 1000);
  Viewed viewed(script);
  const std::string text = viewed.text("summary");
  CHECK(text.find("functions of no module [up to 400 ns less]\n") != std::string::npos);
  CHECK(text.find("not in recorded functions [up to 400 ns less]\n") !=
        std::string::npos);
  CHECK(text.find("  leave [up to 400 ns less]\n") != std::string::npos);
  CHECK(text.find("work > leave [up to 400 ns less]\n") != std::string::npos);
  CHECK(text.find("main [") == std::string::npos);
  const std::string tree = viewed.text("tree");
  CHECK(tree.find("worker 7/8, ended up to 400 ns earlier\n") != std::string::npos);
  CHECK(tree.find("leave [open] [up to 400 ns less]\n") != std::string::npos);
  CHECK(tree.find("worker 7/9, ended up to 400 ns earlier\n") != std::string::npos);
  CHECK(viewed.json("summary").at("parts").at(0).at("end_within_ns") == 400);
}

TEST_CASE("summary: 40 lines at most, the longest sections give way") {
  std::vector<SummarySection> sections = {
      {"", std::vector<std::string>(2, "head")},
      {"A", std::vector<std::string>(50, "a")},
      {"empty", {}},
      {"B", std::vector<std::string>(30, "b")},
      {"", {"hint"}},
  };
  const std::string text = summary_text(sections, 40);
  CHECK(std::count(text.begin(), text.end(), '\n') == 40);
  CHECK(text.starts_with("head\nhead\n\nA\na\n"));
  CHECK(text.ends_with("b\n\nhint\n"));
  CHECK(text.find("empty") == std::string::npos);
  CHECK(std::count(text.begin(), text.end(), 'a') - 2 == 16);
}
