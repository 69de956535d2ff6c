// The rows of the summary about what recording cost.
#include <string>

#include "reader/report/summary_lines.hpp"
#include "tests/support/kernel_script.hpp"
#include "tests/unit/report/viewed.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

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
  CHECK(
      text.find("recording cost less than 1 % of the threads' time, waits included\n") !=
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
            "\nrecording cost about 22.0 us of 100 us, waits included (22 %), 1000 ns a "
            "call\n  91 % of the calls: copy, 20\n") != std::string::npos);
  CHECK(text_with(100'000).find("recording cost about 4.40 us") != std::string::npos);
  CHECK(text_with(100'000).find("of the calls") == std::string::npos);

  // Records that are missing cost time, too, which nobody knows.
  Summary summary;
  const auto with_missing = [&](uint32_t ps, uint64_t overwritten, uint64_t lost) {
    summary.overwritten = overwritten;
    summary.lost = lost;
    const arctrace_hook_cost cost = {ARCTRACE_HOOK_API, ps, ps};
    Viewed viewed(script);
    viewed.settings.summary = &summary;
    viewed.replay.hook_costs = {&cost, 1};
    const std::string text = viewed.text("summary");
    const size_t begin = text.find("recording cost");
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  CHECK(with_missing(1'000, 0, 0) ==
        "recording cost less than 1 % of the threads' time, waits included");
  CHECK(with_missing(1'000, 1234, 0) ==
        "recording cost less than 1 % of the threads' time, waits included, without that "
        "of "
        "1,234 overwritten records");
  CHECK(with_missing(500'000, 1, 2) ==
        "recording cost about 22.0 us of 100 us, waits included (22 %), 1000 ns a call, "
        "without that of 1 overwritten and 2 lost records");
}

TEST_CASE("the time in which some thread only started the tracer counts once") {
  RecordScript script;
  for (const uint32_t pid : {7u, 8u, 9u}) {
    const ProcessIndex process = script.process(pid, "/bin/program");
    const ThreadIndex thread = script.thread(process, pid);
    script.enter(thread, 0, "main");
    script.exit(thread, 1000);
  }
  script.definitions.mutable_process(0)->tracer_starts = {{100, 200}, {300, 400}};
  script.definitions.mutable_process(1)->tracer_starts = {{150, 250}, {160, 170}};
  script.definitions.mutable_process(2)->tracer_starts = {{900, 5000}};
  const ThreadIndex later = script.thread(0, 17);
  script.definitions.mutable_thread(later)->tracer_start = TracerStart{500, 550};
  script.enter(later, 500, "work");
  script.exit(later, 600);
  Replay replay(script.definitions, nullptr);
  script.replay(replay);
  // 100 to 250, 300 to 400, 500 to 550, and 900 to the end at 1000.
  CHECK(own_work_wall_ns(replay) == 150 + 100 + 50 + 100);
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
  const std::string row =
      "\ngiving up the buffer of 72 MiB took about 1.44 ms (14 % of the time on the "
      "CPU), "
      "after the end of 1 program: a smaller one (-b) takes less\n";
  CHECK(viewed.text("summary").find(row) != std::string::npos);
  CHECK(viewed.json("summary").at("buffer_ends_ns") == 1'440'000);
  s.script.definitions.mutable_process(s.process)->end_ns = INT64_MAX;
  CHECK(viewed.text("summary").find("giving up the buffer") == std::string::npos);
  CHECK(viewed.json("summary").at("buffer_ends_ns") == 0);
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
