// The view `summary`: the content of the first screen.
#include <algorithm>
#include <csignal>
#include <iterator>

#include "reader/report/summary_lines.hpp"
#include "reader/report/views.hpp"
#include "tests/support/kernel_script.hpp"
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

TEST_CASE("summary: the thread that a signal came upon stands once") {
  RecordScript script;
  const ProcessIndex process = script.process(7, "/bin/server");
  const ThreadIndex other = script.thread(process, 7, "server");
  script.enter(other, 0, "main");
  const ThreadIndex t = script.thread(process, 8, "worker");
  script.enter(t, 0, "work");
  script.enter(t, 10, "read");
  script.exit(t, 20);
  script.enter(t, 30, "bad");
  script.add(t, 100, ARCTRACE_TYPE_SIGNAL, Bytes().u32(0).u32(7).u32(SIGSEGV).u32(0));
  Viewed viewed(script);
  Session session;
  session.child_wait_status = SIGSEGV;
  viewed.settings.session = &session;
  const auto section = [&] {
    const std::string text = viewed.text("summary");
    const size_t begin = text.find("Where it was");
    return text.substr(begin, text.find("\n\n", begin) - begin);
  };
  CHECK(section() ==
        "Where it was when signal 11 (Segmentation fault) came\n"
        "  thread worker 7/8: work > bad; last call: read, ended 80 ns before\n"
        "  server 7/7: main");

  script.enter(t, 110, "handler");
  session.child_wait_status = (128 + SIGSEGV) << 8;  // the handler ended it so
  CHECK(section() ==
        "Where it was when signal 11 (Segmentation fault) came\n"
        "  thread worker 7/8: work > bad; last call: read, ended 80 ns before\n"
        "    it ended in work > bad > handler\n"
        "  server 7/7: main");
  script.enter(t, 120, "write");
  script.exit(t, 130);
  script.exit(other, 200);
  CHECK(section() ==
        "Where it was when signal 11 (Segmentation fault) came\n"
        "  thread worker 7/8: work > bad\n"
        "    it ended in work > bad > handler; last call: write, ended 70 ns before\n"
        "  server 7/7: no open function; last call: main, ended <1 ns before");
}

TEST_CASE("summary: what was before a signal is reckoned to the signal") {
  RecordScript script;
  const ProcessIndex process = script.process(7, "/bin/server");
  const ThreadIndex other = script.thread(process, 7, "server");
  script.enter(other, 0, "main");
  script.enter(other, 10, "read");
  script.exit(other, 60);
  const ThreadIndex t = script.thread(process, 8, "worker");
  script.enter(t, 0, "work");
  script.enter(t, 10, "read");
  script.exit(t, 20);
  script.enter(t, 30, "bad");
  script.add(t, 100, ARCTRACE_TYPE_SIGNAL,
             Bytes().u32(0).u32(7).u32(SIGSEGV).u32(0).u64(0x1010));
  // The kernel writes a core file, and takes the process down.
  for (const ThreadIndex thread : {other, t}) script.text(thread, 900, "gone");
  Module module;
  module.start = 0x1000;
  module.end = 0x2000;
  module.path = "/bin/server";
  script.definitions.mutable_process(process)->modules = {module};
  Viewed viewed(script);
  Session session;
  session.child_wait_status = SIGSEGV;
  viewed.settings.session = &session;
  const auto section = [&] {
    const std::string text = viewed.text("summary");
    const size_t begin = text.find("Where it was");
    return text.substr(begin, text.find("\n\n", begin) - begin);
  };
  const std::string head =
      "Where it was when signal 11 (Segmentation fault) came\n"
      "  thread worker 7/8: work > bad; last call: read, ended 80 ns before\n";
  const std::string others = "  server 7/7: main; last call: read, ended 40 ns before";
  CHECK(section() ==
        head + "    it was in server+0x1010, which is not recorded\n" + others);
  // There are the moved instructions of functions of the path.
  script.definitions.mutable_process(process)->modules.front().path = "[arctrace]";
  CHECK(section() == head + others);
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

TEST_CASE("summary: what the tracer does is in no sum") {
  RecordScript script;
  const ThreadIndex t = script.program(7, "server");
  script.enter(t, 0, "start");
  script.enter(t, 0, "[arctrace]");
  script.enter(t, 10'000, "K:wait4");
  script.exit(t, 50'000);
  script.exit(t, 60'000);
  script.enter(t, 60'000, "load");
  script.exit(t, 70'000);
  script.exit(t, 80'000);
  script.enter(t, 80'000, "main");
  for (int call = 0; call < 10; ++call) {
    script.enter(t, 80'000 + call * 1000, "work");
    script.exit(t, 81'000 + call * 1000);
  }
  script.exit(t, 100'000);
  const arctrace_hook_cost cost = {ARCTRACE_HOOK_API, 1000, 1000};
  Viewed viewed(script);
  viewed.replay.hook_costs = {&cost, 1};
  const std::string text = viewed.text("summary");
  const std::string line =
      "\narctrace itself took 60.0 us to start and to patch functions, which is in no "
      "sum: [arctrace]\n";
  CHECK(text.find(line) != std::string::npos);
  CHECK(text.find("recording cost less than 1 % of the threads' time\n") !=
        std::string::npos);
  CHECK(text.find("[arctrace]", text.find(line) + line.size()) == std::string::npos);
  for (const bool is_corrected : {false, true}) {
    viewed.replay.is_corrected = is_corrected;
    CHECK(viewed.text("summary").find(line) != std::string::npos);
    const Json summary = viewed.json("summary");
    CHECK(summary.at("arctrace_ns") == 60'000);
    // A corrected report has taken off what recording cost, too.
    const Json root = summary.at("threads").at(0).at("root");
    CHECK(root.at("cum_ns") <= 40'000);
    CHECK(root.at("cum_ns") > 39'900);
    const Json& start = root.at("children").at(0).at("name") == "start"
                            ? root.at("children").at(0)
                            : root.at("children").at(1);
    CHECK(start.at("cum_ns") <= 20'000);
    for (const Json& child : start.at("children")) {
      if (child.at("name") == "[arctrace]") CHECK(child.at("children").empty());
    }
  }
}

TEST_CASE("summary: the function with the most calls, if recording cost much") {
  RecordScript script;
  const ThreadIndex t = script.program(7, "prog");
  script.enter(t, 0, "main");
  for (int call = 0; call < 20; ++call) {
    const int64_t at = 1'000 + call * 100;
    script.enter(t, at, "copy");
    script.exit(t, at + 50);
  }
  script.enter(t, 90'000, "walk");
  script.exit(t, 91'000);
  script.exit(t, 100'000);
  const auto text_with = [&](uint32_t ps) {
    const arctrace_hook_cost cost = {ARCTRACE_HOOK_API, ps, ps};
    Viewed viewed(script);
    viewed.replay.hook_costs = {&cost, 1};
    return viewed.text("summary");
  };
  CHECK(text_with(500'000).find(
            "\nrecording cost about 22.0 us of 100 us (22 %), 1000 ns a "
            "call\n  91 % of the calls: copy, 20\n") != std::string::npos);
  CHECK(text_with(100'000).find("recording cost about 4.40 us") != std::string::npos);
  CHECK(text_with(100'000).find("of the calls") == std::string::npos);
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

TEST_CASE("summary: what it costs that processes give up a buffer of the kernel's") {
  KernelScript s;
  const ThreadIndex t = s.script.thread(s.process, 100, "prog");
  s.task(100);
  s.script.enter(t, 0, "main");
  s.comes(100, 0);
  s.script.exit(t, 1'000'000);
  s.script.enter(t, 10'000'000, "end");
  s.script.exit(t, 10'000'000);
  s.script.definitions.mutable_process(s.process)->end_ns = 9'000'000;
  Session session;
  session.buffer_size = 72 << 20;
  session.hook_costs = {{ARCTRACE_HOOK_PROCESS, 60'000'000, 20'000'000}};
  Viewed viewed(s.script);
  viewed.settings.session = &session;
  CHECK(viewed.text("summary").find(
            "\nrecording cost about 1.44 ms of 10.0 ms on the CPU (14 %)") !=
        std::string::npos);
  CHECK(viewed.text("summary").find(
            "\n  1.44 ms of it in 1 program after its end, which gave up the buffer of "
            "72 MiB: less with -b 4M\n") != std::string::npos);
  s.script.definitions.mutable_process(s.process)->end_ns = INT64_MAX;
  CHECK(viewed.text("summary").find("recording cost") == std::string::npos);
}

TEST_CASE("summary: a mark is explained below a table that has it") {
  RecordScript script;
  const ThreadIndex t = script.program(7, "prog");
  script.enter(t, 0, "main");
  for (int64_t call = 0; call < 100; ++call) {
    script.enter(t, call * 100, "small");
    script.exit(t, call * 100 + 10);
  }
  script.exit(t, 100'000);
  const arctrace_hook_cost cost = {ARCTRACE_HOOK_API, 10'000, 10'000};
  Viewed viewed(script);
  viewed.replay.hook_costs = {&cost, 1};
  const std::string legend =
      "  [recording]: recording is half or more of a function's time; see --corrected\n";
  const auto has = [&](const std::string& part) {
    return viewed.text("summary").find(part) != std::string::npos;
  };
  CHECK(has("  small [recording]\n" + legend));
  // The row is one of the others.
  viewed.settings.options.limit = 1;
  CHECK(has("others (1)\n"));
  CHECK_FALSE(has("[recording]"));
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

namespace {

// The lines of a section of the text, without its head.
std::vector<std::string> section_of(const std::string& text, const std::string& head) {
  std::vector<std::string> lines;
  size_t at = text.find(head);
  REQUIRE(at != std::string::npos);
  at = text.find('\n', at) + 1;
  while (at < text.size() && text[at] != '\n') {
    const size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
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
      const std::vector<std::string> lines = section_of(text, head);
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

TEST_CASE("summary: of many threads of a crash, how many are not shown") {
  RecordScript script;
  const ProcessIndex process = script.process(7, "/bin/server");
  for (uint32_t tid = 7; tid < 14; ++tid) {
    const ThreadIndex t = script.thread(process, tid, "worker" + std::to_string(tid - 7));
    for (int64_t i = 0; i < 9; ++i) {
      script.enter(t, 100 * i, "f" + std::to_string(i));
      script.enter(t, 100 * i + 30, "g");
      script.exit(t, 100 * i + 99);
      script.exit(t, 100 * i + 99);
    }
    script.enter(t, 900, "wait");
  }
  script.text(kNoIndex, 1000, "the end");
  Viewed viewed(script);
  Session session;
  session.child_wait_status = SIGSEGV;
  viewed.settings.session = &session;
  for (const uint64_t limit : {UINT64_MAX, uint64_t{2}}) {
    CAPTURE(limit);
    viewed.settings.options.limit = limit;
    const std::vector<std::string> lines =
        section_of(viewed.text("summary"), "Where it was when signal");
    CHECK(lines.front().find("which thread got it is not recorded") != std::string::npos);
    const auto shown = std::count_if(
        lines.begin(), lines.end(),
        [](const std::string& line) { return line.find(": wait") != std::string::npos; });
    CHECK(shown >= 1);
    CHECK(lines.back() == "  " + std::to_string(7 - shown) + " more threads");
  }
}
