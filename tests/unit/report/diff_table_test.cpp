// The table of `arctrace diff`: its head, and the columns of the kernel's times.
#include "reader/report/diff_table.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/support/kernel_script.hpp"

using namespace arctrace::reader;
using namespace arctrace::testing;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A comparison of two runs, or of as many as are added.
struct Compared {
  Compared(const RecordScript& before, const RecordScript& after,
           ReportClock clock = ReportClock::kWall) {
    table.clock = clock;
    add(DiffSide::kBefore, before);
    add(DiffSide::kAfter, after);
  }

  std::string text() const {
    std::string text;
    write_diff_text(table, options, [&](std::string_view piece) {
      text += piece;
      return true;
    });
    return text;
  }
  nlohmann::json json() const {
    std::string text;
    JsonWriter json([&](std::string_view piece) {
      text += piece;
      return true;
    });
    json.begin_object();
    write_diff_json(table, options, json);
    json.end();
    json.finish();
    return nlohmann::json::parse(text);
  }

  void add(DiffSide side, const RecordScript& script) {
    ReplayOptions replay_options;
    replay_options.clock = table.clock;
    Replay replay(script.definitions, nullptr, replay_options);
    script.replay(replay);
    diff.add_run(side, replay);
    DiffRun run;
    run.path = "run.data";
    run.wall_ns = 1000;
    run.own_wall_ns = 100;
    const TreeGroups groups(replay, Grouping::kAll);
    const TreeGroup& all = groups.groups().front();
    run.clock_ns = (*all.tree)[all.root].total_ns;
    (side == DiffSide::kBefore ? table.before : table.after).push_back(std::move(run));
    table.changes = diff.changes(SortKey::kName);
  }

  FunctionDiff diff;
  DiffTable table{diff, {}, {}, {}};
  ViewOptions options;
};

}  // namespace

TEST_CASE(
    "diff: another clock's time of all threads is in the head, as what is compared") {
  const KernelScript run = one_wake_up();
  const std::string text = Compared(run.script, run.script, ReportClock::kCpu).text();
  CHECK(has(text,
            "wall:   900 ns -> 900 ns, +0.0 %\n        and 100 ns -> 100 ns of "
            "arctrace's own work\n"));
  CHECK(has(text,
            "on CPU: 1.75 us -> 1.75 us, +0.0 %; this is compared: times of "
            "functions are those on a CPU\n"));
  CHECK_FALSE(has(text, "Blocked"));
  CHECK(has(Compared(run.script, run.script, ReportClock::kOffCpu).text(),
            "off:    250 ns -> 250 ns, +0.0 %; this is compared: times of functions are "
            "those off the CPU\n"));
  const auto json = Compared(run.script, run.script, ReportClock::kCpu).json();
  CHECK(json["runs_a"][0]["clock_ns"] == 1750);
  CHECK_FALSE(Compared(run.script, run.script).json()["runs_a"][0].contains("clock_ns"));
}

TEST_CASE("diff: blocked and without a CPU have columns if all runs tell them") {
  const KernelScript run = one_wake_up();
  Compared compared(run.script, run.script);
  const std::string text = compared.text();
  CHECK(has(text, "  Blocked before       after  No CPU before       after  Name\n"));
  CHECK(has(text, "          200 ns      200 ns          50 ns       50 ns  f\n"));
  CHECK_FALSE(has(text, "this is compared"));
  const auto f = compared.json()["functions"][0];
  CHECK(f["name"] == "f");
  CHECK(f["off_cpu_ns_a"] == 250);
  CHECK(f["ready_ns_b"] == 50);
  compared.options.style.width = 120;
  CHECK_FALSE(has(compared.text(), "Blocked"));
  RecordScript without;
  const ThreadIndex t = without.program(7, "p");
  without.enter(t, 0, "f");
  without.exit(t, 10);
  Compared one_side(run.script, without);
  CHECK_FALSE(has(one_side.text(), "Blocked"));
  CHECK_FALSE(one_side.json()["functions"][0].contains("off_cpu_ns_a"));
}

TEST_CASE("diff: times and calls are means of the same runs") {
  const auto run_of = [](const std::vector<int64_t>& calls_ns) {
    RecordScript run;
    const ThreadIndex t = run.program(7, "p");
    run.enter(t, 0, "main");
    int64_t now_ns = 0;
    for (const int64_t call_ns : calls_ns) {
      run.enter(t, now_ns, "maybe");
      run.exit(t, now_ns += call_ns);
    }
    run.exit(t, 10'000);
    return run;
  };
  Compared compared(run_of({}), run_of({3000}));
  for (int i = 0; i < 2; ++i) {
    compared.add(DiffSide::kBefore, run_of({}));
    compared.add(DiffSide::kAfter, run_of({}));
  }
  const auto text = compared.text();
  CHECK(has(text,
            "            -      1.00 us     +1.00 us      new             -         0.3  "
            "maybe [within the noise]\n"));
  CHECK(has(text, "            1           1  main"));
  const auto json = compared.json()["functions"];
  CHECK(json[0]["calls_a"].is_number_integer());
  CHECK(json[0]["calls_a"] == 1);
  CHECK(json[1]["name"] == "maybe");
  CHECK(json[1]["base_ns_b"] == 1000);
  CHECK(json[1]["calls_b"].get<double>() == doctest::Approx(1.0 / 3));
  compared.options.style.width = 99;
  CHECK(has(compared.text(), "maybe [0 -> 0.3 calls] [within the noise]\n"));
}

TEST_CASE("diff: what the tracer itself did has no row") {
  RecordScript run;
  const ThreadIndex t = run.program(7, "p");
  run.enter(t, 0, "[arctrace]");
  run.exit(t, 500);
  run.enter(t, 500, "main");
  run.exit(t, 1000);
  Compared compared(run, run);
  CHECK(has(compared.text(), "main"));
  CHECK_FALSE(has(compared.text(), "[arctrace]"));
  CHECK(compared.json()["functions"].size() == 1);
}
