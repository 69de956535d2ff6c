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

// A comparison of two runs.
struct Compared {
  Compared(const RecordScript& before, const RecordScript& after,
           ReportClock clock = ReportClock::kWall) {
    table.clock = clock;
    add(DiffSide::kBefore, before);
    add(DiffSide::kAfter, after);
    table.changes = diff.changes(SortKey::kName);
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

  FunctionDiff diff;
  DiffTable table{diff, {}, {}, {}};
  ViewOptions options;

 private:
  void add(DiffSide side, const RecordScript& script) {
    ReplayOptions replay_options;
    replay_options.clock = table.clock;
    Replay replay(script.definitions, nullptr, replay_options);
    script.replay(replay);
    diff.add_run(side, replay);
    DiffRun run;
    run.path = "run.data";
    run.wall_ns = 1000;
    const TreeGroups groups(replay, Grouping::kAll);
    const TreeGroup& all = groups.groups().front();
    run.clock_ns = (*all.tree)[all.root].total_ns;
    (side == DiffSide::kBefore ? table.before : table.after).push_back(std::move(run));
  }
};

}  // namespace

TEST_CASE(
    "diff: another clock's time of all threads is in the head, as what is compared") {
  const KernelScript run = one_wake_up();
  const std::string text = Compared(run.script, run.script, ReportClock::kCpu).text();
  CHECK(has(text, "wall:   1.00 us -> 1.00 us, +0.0 %\n"));
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
