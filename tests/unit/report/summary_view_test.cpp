// The view `summary`: the content of the first screen.
#include <algorithm>
#include <csignal>
#include <iterator>

#include "reader/report/summary_lines.hpp"
#include "reader/report/views.hpp"
#include "tests/unit/report/viewed.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

TEST_CASE("summary: what the time was spent on, and where") {
  const RecordScript script = treetest();
  Viewed viewed(script);
  CHECK(viewed.text("summary") == R"(100 us, 1 process, 1 thread

      us     %              Calls  Spent on
     100 100 % ████████         7  functions of no module

 Self us     %       Calls       Avg       Max  Hottest functions
    40.0  40 %           1   40.0 us   40.0 us  mainBB
    30.0  30 %           1   30.0 us   30.0 us  mainBA
    20.0  20 %           1   20.0 us   20.0 us  mainAB
    10.0  10 %           1   10.0 us   10.0 us  mainAA

 Self us     %  Hottest paths
    40.0  40 %  main > mainB > mainBB
    30.0  30 %  main > mainB > mainBA
    20.0  20 %  main > mainA > mainAB
    10.0  10 %  main > mainA > mainAA

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
  CHECK(text.find("     900  90 %        9  server, thread worker  serve 900 ns\n") !=
        std::string::npos);
  CHECK(text.find("     100  10 %        1  server  serve 100 ns\n") !=
        std::string::npos);
}

TEST_CASE("summary: the hottest paths may have one frame") {
  RecordScript script;
  const ThreadIndex t = script.program(7, "server");
  script.enter(t, 0, "main");
  for (int64_t time_ns = 0; time_ns < 1000; time_ns += 100) {
    script.enter(t, time_ns, "read");
    script.exit(t, time_ns + 20);
  }
  script.exit(t, 1000);
  Viewed viewed(script);
  viewed.settings.options.limit = UINT64_MAX;
  const std::string text = viewed.text("summary");
  const size_t begin = text.find("Hottest paths");
  REQUIRE(begin != std::string::npos);
  CHECK(text.substr(begin, text.find("\n\n", begin) - begin) ==
        "Hottest paths\n     800  80 %  main\n     200  20 %  main > read");
  // Where all have one, they are the functions.
  RecordScript flat;
  const ThreadIndex one = flat.program(7, "server");
  for (int64_t time_ns = 0; time_ns < 1000; time_ns += 100) {
    flat.enter(one, time_ns, "step");
    flat.exit(one, time_ns + 100);
  }
  Viewed viewed_flat(flat);
  CHECK(viewed_flat.text("summary").find("Hottest paths") == std::string::npos);
}

TEST_CASE("summary: a file that is the end of a recording says so") {
  const RecordScript script = treetest();
  Viewed viewed(script);
  Session session;
  session.begins_elsewhere = true;
  session.child_wait_status = 0;
  viewed.settings.session = &session;
  CHECK(viewed.text("summary").find(
            "exit 0, of which the last 100 us are here, 1 process, 1 thread\n") !=
        std::string::npos);
}

TEST_CASE("summary: functions that were switched off") {
  RecordScript script = treetest();
  Summary summary;
  Viewed viewed(script);
  viewed.settings.summary = &summary;
  CHECK(viewed.text("summary").find("switched off") == std::string::npos);
  script.definitions.mutable_process(0)->switched_off = {{0x10, 7'000'000},
                                                         {0x20, 5'000'000}};
  Viewed viewed_without(script);
  viewed_without.settings.summary = &summary;
  CHECK(viewed_without.text("summary").find(
            "\n  2 functions were switched off, because their calls filled the buffer:\n"
            "  calls are lower bounds from 5.00 ms on; arctrace info -v names them\n") !=
        std::string::npos);
}

TEST_CASE("summary: what filters left out while it was recorded") {
  RecordScript script = treetest();
  script.definitions.mutable_live_filters().add(50'000, std::string("-mainB\0", 7));
  script.definitions.add_name(0, 0, std::string("size:100\0", 9));
  Viewed viewed(script);
  const std::string text = viewed.text("summary");
  CHECK(text.find(
            "\n  3 functions are not complete: ctl -N mainB from 50.0 us on left calls "
            "out\n") != std::string::npos);
  CHECK(text.find("\n  left out by -Z 100: functions without a row, whose time is their "
                  "callers'\n") != std::string::npos);
  CHECK(text.find("  mainBB [partly from 50.0 us on]\n") != std::string::npos);
  CHECK(text.find("what the calls cost that filters left out is not known\n") !=
        std::string::npos);
}

TEST_CASE("summary: a filter by size leaves out functions that have no hooks") {
  RecordScript script = treetest();
  script.definitions.add_name(0, 0, std::string("size:100\0", 9));
  Viewed viewed(script);
  const std::string text = viewed.text("summary");
  CHECK(text.find("left out by -Z 100") != std::string::npos);
  CHECK(text.find("what the calls cost") == std::string::npos);
}

TEST_CASE("summary: of few calls, too") {
  RecordScript script;
  const ThreadIndex thread = script.program(7, "prog");
  script.enter(thread, 0, "main");
  script.exit(thread, 5000);
  script.definitions.add_name(0, 0, std::string("time:1000\0", 10));
  const std::string text = Viewed(script).text("summary");
  CHECK(text.find("  main 5.00 us [partly]\n") != std::string::npos);
  CHECK(text.find("\n  1 function is not complete: -t 1us left calls out\n") !=
        std::string::npos);
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
  // Such functions may be among the missing ones.
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
  // Other threads may have called some of them.
  viewed_without.replay.wants_thread = [](ThreadIndex) { return true; };
  CHECK(viewed_without.text("summary").find(kHint) == std::string::npos);
}

TEST_CASE("summary: why the program's own functions are not recorded, and what to do") {
  RecordScript script;
  script.text(script.program(7, "prog"), 10, "a text");
  Viewed viewed(script);
  Session session;
  session.finished = true;
  viewed.settings.session = &session;
  const auto has = [&](std::vector<std::string> options, const std::string& advice) {
    session.recorder_command = {"arctrace", "record"};
    for (std::string& option : options) session.recorder_command.push_back(option);
    const std::string hint = "functions of prog itself are not recorded: ";
    return viewed.text("summary").find("\n" + hint + advice) != std::string::npos;
  };
  CHECK(has({}, "record it with -P ., or"));
  CHECK(has({"-P", "."}, "record it with -P . -Z 1, or"));
  const std::string filtered = "functions were switched off or filtered out meanwhile\n";
  CHECK(has({"-P", ".", "-Z", "100"}, filtered));
  CHECK(has({"--size-filter=10"}, filtered));
  CHECK(has({"-F", "x"}, filtered));
  for (const std::vector<std::string>& any_size : std::vector<std::vector<std::string>>{
           {"-P.", "-Z", "1"}, {"-P.", "-Z1"}, {"--patch=.", "--size-filter=1"}}) {
    CHECK(has(any_size, "none could be patched for -P: arctrace functions --list"));
  }
  Process& process = *script.definitions.mutable_process(0);
  process.patch_refusal = ARCTRACE_PATCH_THREADS;
  CHECK(has({"-P", ".", "-Z", "1"},
            "nothing was patched for -P: it had other threads before its own code ran; "
            "record -p PID -P . patches it later\n"));
  process.patch_refusal = ARCTRACE_PATCH_CONFINED;
  CHECK(has({"-P", "."}, "nothing was patched for -P: it is under a seccomp filter\n"));
}

TEST_CASE("summary: all processes and threads that are known, in its head as below it") {
  RecordScript script;
  const ThreadIndex known = script.program(7, "server");
  script.enter(known, 0, "main");
  script.exit(known, 100);
  script.program(8, "server");  // only its number is known
  Summary summary;
  summary.processes = 2;
  summary.threads = 2;
  Viewed viewed(script);
  viewed.settings.summary = &summary;
  CHECK(viewed.text("summary").find("100 ns, 2 processes, 2 threads\n") !=
        std::string::npos);
  viewed.replay.filter.until_ns = 50;
  CHECK(viewed.text("summary").find("50 ns, 1 of 2 processes, 1 of 2 threads\n") !=
        std::string::npos);
  viewed.replay.filter = {};
  viewed.replay.wants_thread = [&](ThreadIndex thread) { return thread == known; };
  CHECK(viewed.text("summary").find("100 ns, 1 of 2 processes, 1 of 2 threads\n") !=
        std::string::npos);
}

TEST_CASE("summary: the time outside of the functions that a filter shows") {
  const RecordScript script = treetest();
  Viewed viewed(script);
  const std::string whole = viewed.text("summary");
  CHECK(whole.find("not in the functions that are shown") == std::string::npos);
  viewed.replay.filter.only = {"mainBA"};
  CHECK(viewed.text("summary").find("not in the functions that are shown") !=
        std::string::npos);
  viewed.replay.filter.only = {"nosuch"};
  const std::string none = viewed.text("summary");
  CHECK(none.find("no call passes the filters\n  the rest: not in the functions that are "
                  "shown ") != std::string::npos);
  CHECK(none.find("recorded functions") == std::string::npos);
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

TEST_CASE("summary: how exactly it is known when a program was executed") {
  RecordScript script;
  const ThreadIndex main = script.program(7, "main");
  Process& process =
      *script.definitions.mutable_process(script.definitions.threads()[main].process);
  process.exec_ns = 0;
  process.exec_within_ns = 300;
  process.main_ns = 900;
  script.definitions.mutable_thread(main)->start_ns = 800;
  script.enter(main, 1000, "main");
  script.exit(main, 2000);
  Viewed viewed(script);
  CHECK(viewed.text("tree").find("[loader] [up to 300 ns less]\n") != std::string::npos);
  const std::string text = viewed.text("summary");
  CHECK(text.find(
            "\n1 call: too few for shares\n"
            "  main 1.00 us\n"
            "  the rest: [loader] 800 ns [up to 300 ns less], [constructors] 100 ns") !=
        std::string::npos);
  CHECK(viewed.json("summary").at("parts").at(1).at("begin_within_ns") == 300);
  // What is not known of the loader's time is within it.
  script.definitions.mutable_process(0)->exec_within_ns = 1'000'000;
  const Json loader = viewed.json("summary").at("parts").at(1);
  CHECK(loader.at("name") == "[loader]");
  CHECK(loader.at("begin_within_ns") == loader.at("base_ns"));
}

TEST_CASE("summary: 40 lines at most, the longest sections give way") {
  const auto rows = [](size_t count, const char* row) {
    SummarySection section{row, std::vector<std::string>(count, row)};
    for (size_t i = 0; i <= count; ++i) {
      section.others.push_back(i == count ? "" : others_name(count - i));
    }
    return section;
  };
  std::vector<SummarySection> sections = {
      {"", std::vector<std::string>(2, "head")},
      rows(50, "a"),
      {"empty", {}},
      rows(30, "b"),
      rows(3, "c"),
      {"", {"hint"}},
  };
  sections[1].end = {"in all"};
  const std::string text = summary_text(sections, 40);
  CHECK(std::count(text.begin(), text.end(), '\n') == 40);
  CHECK(text.starts_with("head\nhead\n\na\na\n"));
  CHECK(text.ends_with("b\nothers (18)\n\nc\nc\nc\nc\n\nhint\n"));
  CHECK(text.find("a\nothers (38)\nin all\n") != std::string::npos);
  CHECK(text.find("empty") == std::string::npos);
  // Lines that may not be omitted stay.
  const std::string long_head =
      summary_text({{"", std::vector<std::string>(50, "head")}, rows(9, "a")}, 40);
  CHECK(std::count(long_head.begin(), long_head.end(), 'h') == 51);
  CHECK(long_head.ends_with("\n\na\na\nothers (8)\n"));
}

TEST_CASE("summary: functions that arctrace_python names are Python's") {
  RecordScript script;
  const ThreadIndex t = script.program(7, "python3");
  for (int64_t at = 0; at < 30'000; at += 1'000) {
    script.enter(t, at, "py:__main__.main");
    script.exit(t, at + 1'000);
  }
  const std::string text = Viewed(script).text("summary");
  CHECK(text.find("  Python functions\n") != std::string::npos);
  CHECK(text.find("no module") == std::string::npos);
}

TEST_CASE("summary: long paths are cut in their middle, unless all is asked for") {
  RecordScript script;
  const ThreadIndex t = script.program(7, "prog");
  constexpr int kDeep = 100;
  script.enter(t, 0, "main");
  for (int i = 1; i <= kDeep; ++i) script.enter(t, i, "evaluate");
  script.enter(t, kDeep + 1, "sort");
  for (int i = 0; i < kDeep + 2; ++i) script.exit(t, 10'000);
  Viewed viewed(script);
  const auto path = [&] {
    const std::string text = viewed.text("summary");
    const size_t begin = text.find("  main > ");
    REQUIRE(begin != std::string::npos);
    return text.substr(begin + 2, text.find('\n', begin) - begin - 2);
  };
  const std::string cut = path();
  CHECK(cut.starts_with("main > evaluate > evaluate > "));
  CHECK(cut.find(" > … > ") != std::string::npos);
  CHECK(cut.ends_with(" > evaluate > evaluate > sort"));
  CHECK(columns_of(cut) <= kOverviewPathColumns);
  viewed.settings.options.style.width = 80;
  CHECK(path().ends_with(" > … > evaluate > evaluate > sort"));
  viewed.settings.options.style.width = 0;
  viewed.settings.options.style.whole = true;
  CHECK(path().starts_with("main > evaluate > "));
  CHECK(path().find(" > evaluate > ... > evaluate > ") != std::string::npos);
  CHECK(columns_of(path()) > 2 * kOverviewPathColumns);
}

namespace {

constexpr const char* kTables[] = {"Spent on", "Hottest functions", "Hottest paths",
                                   "Of what, and where mostly"};

}  // namespace

TEST_CASE("summary: what each table shows adds up to all, whatever is left out") {
  constexpr const char* kCalled[] = {"malloc", "open",      "read",           "mmap",
                                     "socket", "poll",      "fork",           "sem_wait",
                                     "kill",   "nanosleep", "pthread_create", "time"};
  RecordScript script;
  const ProcessIndex process = script.process(7, "/bin/server");
  for (uint32_t i = 0; i < std::size(kCalled); ++i) {
    const ThreadIndex t = script.thread(process, 7 + i, "t" + std::to_string(i));
    script.enter(t, 0, "work");
    script.enter(t, 30, kCalled[i]);
    script.exit(t, 80);
    script.exit(t, 80);
  }
  for (const uint64_t limit : {UINT64_MAX, uint64_t{1}, uint64_t{3}}) {
    CAPTURE(limit);
    Viewed viewed(script);
    viewed.settings.options.limit = limit;
    const std::string text = viewed.text("summary");
    CHECK(std::count(text.begin(), text.end(), '\n') <= 40);
    for (const char* head : kTables) {
      CAPTURE(head);
      int sum = 0;
      const std::vector<std::string> lines = section_lines(text, head);
      for (const std::string& line : lines) sum += std::stoi(line);
      CHECK(sum == 960);
      CHECK(lines.back().find("  others (") != std::string::npos);
      CHECK(lines.size() <= limit + (limit == UINT64_MAX ? 0 : 1));
    }
  }
  Viewed viewed(script);
  viewed.settings.options.limit = 0;
  for (const char* head : kTables) {
    CHECK(viewed.text("summary").find(head) == std::string::npos);
  }
}
