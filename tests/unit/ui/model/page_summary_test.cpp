// The page's summary says what that of `arctrace report` says.
#include "reader/ui/model/page_summary.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <string>

#include "reader/ui/model/page_totals.hpp"
#include "tests/support/kernel_script.hpp"
#include "tests/unit/report/viewed.hpp"
#include "tests/unit/ui/model/paged.hpp"

namespace arctrace::reader {
namespace {

using testing::Json;
using testing::KernelScript;
using testing::Paged;
using testing::RecordScript;
using testing::Viewed;

// The facts and totals of the page, and the text of the report, of the same script.
struct Both {
  explicit Both(const RecordScript& script, const Session* session = nullptr,
                const Summary* summary = nullptr,
                std::span<const arctrace_hook_cost> costs = {})
      : paged(script, session, costs) {
    Viewed viewed(script);
    viewed.settings.session = session;
    viewed.settings.summary = summary;
    viewed.settings.options.limit = 10;
    viewed.replay.hook_costs = costs;
    text = viewed.text("summary");
    const PageFacts page{paged.replay, paged.parts, session, summary};
    facts = Paged::json_of(paged.parts.timeline(), [&](LaneNumber, JsonWriter& json) {
      write_facts_json(page, json);
      PageSummary(page).write_crash_json(json);
    });
    totals = Paged::json_of(paged.parts.timeline(), [&](LaneNumber, JsonWriter& json) {
      write_totals_json(page, {}, json);
    });
  }

  // Whether the report has these lines of the page, one after the other.
  bool report_has(const Json& lines) const {
    std::string all;
    for (const Json& line : lines) all += "\n" + line.get<std::string>();
    return text.find(all + "\n") != std::string::npos;
  }

  Paged paged;
  std::string text;  // of the report
  Json facts, totals;
};

TEST_CASE("page: processes and threads are counted as the kernel does") {
  RecordScript script;
  const ThreadIndex shell = script.program(7, "sh");
  const ThreadIndex tool = script.program(7, "tool");
  const auto process_of = [&](ThreadIndex thread) {
    return script.definitions.mutable_process(
        script.definitions.threads()[thread].process);
  };
  process_of(shell)->end_ns = 100;
  process_of(tool)->origin = ARCTRACE_ORIGIN_EXEC;
  process_of(tool)->start_ns = process_of(tool)->exec_ns = 100;
  script.enter(shell, 0, "f");
  script.exit(shell, 100);
  script.enter(tool, 200, "g");
  script.exit(tool, 300);
  const Both both(script);
  CHECK(both.paged.replay.threads().size() == 2);
  CHECK(both.text.find("1 process, 1 thread\n") != std::string::npos);
  CHECK(both.facts["counts"] == Json{{"processes", 1}, {"threads", 1}});
}

TEST_CASE("page: what recording cost, what is missing, and the marks of rows") {
  RecordScript script;
  const ThreadIndex thread = script.program(7, "main");
  script.enter(thread, 0, "main");
  for (int64_t i = 0; i < 20; ++i) {
    script.enter(thread, 1000 + 100 * i, "small");
    script.exit(thread, 1050 + 100 * i);
  }
  script.exit(thread, 10'000);
  Summary summary;
  summary.records = 42;
  summary.lost = 3;
  const arctrace_hook_cost cost = {ARCTRACE_HOOK_API, 30'000, 30'000};
  const Both both(script, nullptr, &summary, {&cost, 1});
  const Json& recording = both.totals["recording"];
  REQUIRE(recording.size() >= 4);
  CHECK(recording[0].get<std::string>().find("recording cost about ") == 0);
  CHECK(recording[1].get<std::string>().find(" of the calls: small, 20") !=
        std::string::npos);
  CHECK(both.text.find("records are missing") != std::string::npos);
  CHECK(both.report_has(recording));
  const Json marks = both.totals["marks"];
  REQUIRE(marks.size() == 1);
  CHECK(both.paged.name(marks[0][0].get<FunctionId>()) == "small");
  CHECK(marks[0][1] == " [recording]");
  CHECK(both.totals["marks_legend"].size() == 1);
  CHECK(Both(script).totals["marks"].empty());
  CHECK(Both(script).totals["marks_legend"].empty());
}

TEST_CASE("page: where the program was when a signal ended it") {
  RecordScript script;
  const ThreadIndex thread = script.program(7, "/bin/server");
  script.enter(thread, 0, "main");
  script.enter(thread, 10, "bad");
  Session session;
  session.child_wait_status = SIGSEGV;
  const Both both(script, &session);
  const Json& crash = both.facts["crash"];
  CHECK(crash["head"].get<std::string>().find("Where it was when signal 11") == 0);
  CHECK(crash["lines"].dump().find("main > bad") != std::string::npos);
  CHECK(both.text.find("\n" + crash["head"].get<std::string>() + "\n") !=
        std::string::npos);
  CHECK(both.report_has(crash["lines"]));
  CHECK(both.facts["other_crashes"].is_null());
  session.child_wait_status = 0;
  CHECK(Both(script, &session).facts["crash"].is_null());

  script.definitions.mutable_process(0)->died_ns = 100;  // without an end of its own
  const Both gone(script, &session);
  const Json& others = gone.facts["other_crashes"];
  CHECK(others["head"] == "Other programs that did not end by exit()");
  CHECK(gone.report_has(others["lines"]));
}

// The self time of a function in a list of totals; -1: it is not there.
int64_t self_ns(const Both& both, const Json& totals, const std::string& name) {
  for (const Json& row : totals) {
    if (both.paged.name(row[0].get<FunctionId>()) == name) return row[2];
  }
  return -1;
}

TEST_CASE("page: a server's time without work, and threads that sleep, are left out") {
  const KernelScript server = testing::one_server();
  const Session session;
  const Both both(server.script, &session);
  const Json& serving = both.totals["serving"];
  CHECK(both.report_has(serving["lines"]));
  CHECK(serving["lines"].dump().find("1 thread slept throughout: sleeper") !=
        std::string::npos);
  const Json& busy = both.totals["busy"];
  CHECK(self_ns(both, both.totals["totals"], "take") == 27'000);
  CHECK(self_ns(both, busy["totals"], "take") == 0);
  CHECK(self_ns(both, busy["totals"], "work") == 3000);
  CHECK(busy["of_all_ns"] < both.totals["of_all_ns"]);
  const auto part_names = [](const Json& sums) {
    std::string names;
    for (const Json& part : sums["parts"])
      names += part["name"].get<std::string>() + "\n";
    return names;
  };
  CHECK(part_names(both.totals).find("sleep") != std::string::npos);
  CHECK(part_names(busy).find("sleep") == std::string::npos);
  const KernelScript other = testing::one_wake_up();
  const Both whole(other.script, &session);
  CHECK(whole.totals["busy"].is_null());
  CHECK(whole.totals["serving"].is_null());
}

}  // namespace
}  // namespace arctrace::reader
