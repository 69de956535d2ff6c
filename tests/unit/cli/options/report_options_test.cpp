// The options of `report`: views, groupings, sort keys, filters, and which of them
// exclude each other.
#include "reader/cli/options/report_options.hpp"

#include <doctest/doctest.h>

#include "tests/support/record_script.hpp"
#include "tests/unit/cli/options/parsed.hpp"

namespace arctrace::cli {
namespace {

using reader::Grouping;
using reader::ReportClock;
using reader::SortKey;

// The options as the subcommand has them when it runs.
struct ReportParsed {
  explicit ReportParsed(std::vector<std::string> arguments) {
    CLI::App app;
    add_report_options(app, options);
    error = testing::parse_error(app, std::move(arguments));
    if (!error.empty()) return;
    error = std::string(complete_report_options(options).message());
  }
  ReportOptions options;
  std::string error;
};

TEST_CASE("report options: defaults") {
  const ReportParsed parsed({});
  CHECK(parsed.error == "");
  CHECK(parsed.options.paths == std::vector<std::string>{kDefaultFile});
  CHECK(std::string(parsed.options.view->name) == "summary");
  CHECK(parsed.options.format == OutputFormat::kText);
  CHECK(parsed.options.shown.sort == SortKey::kTotal);
  CHECK(parsed.options.shown.limit == UINT64_MAX);
  CHECK(parsed.options.needs_kernel() == "");
  CHECK_FALSE(parsed.options.has_thread_filter());
}

TEST_CASE("report options: each view is a value of --view") {
  for (const reader::ViewType& type : reader::view_types()) {
    const ReportParsed parsed({"--view", type.name, "-F", "f"});
    CHECK(parsed.error == "");
    // -F filters calls, or names the functions that the view is about.
    const std::vector<std::string> functions = {"f"};
    const std::vector<std::string> none;
    CHECK(parsed.options.functions == (type.is_about_functions ? functions : none));
    CHECK(parsed.options.filter.only == (type.is_about_functions ? none : functions));
    CHECK(parsed.options.shown.limit == type.limit);
    CHECK(parsed.options.view == &type);
  }
  CHECK(ReportParsed({"--view=FLAT"}).options.view == reader::find_view_type("flat"));
  const std::string error = ReportParsed({"--view", "arc"}).error;
  CHECK(error.starts_with("--view: \"arc\" is not summary, tree, flat, "));
  CHECK(error.find("; did you mean \"arcs\"") != std::string::npos);
}

TEST_CASE("report options: the help lists each view with what it shows") {
  ReportOptions options;
  CLI::App app;
  add_report_options(app, options);
  const std::string help = app.help();
  for (const reader::ViewType& type : reader::view_types()) {
    CAPTURE(std::string(type.name));
    CHECK(help.find("\n  " + std::string(type.name) + " ") != std::string::npos);
    CHECK(help.find(type.help) != std::string::npos);
  }
}

TEST_CASE("report options: groupings") {
  CHECK(ReportParsed({}).options.grouping() == Grouping::kThread);
  CHECK(ReportParsed({"--view=flat"}).options.grouping() == Grouping::kAll);
  CHECK(ReportParsed({"--view=flat", "--per=thread"}).options.grouping() ==
        Grouping::kThread);
  CHECK(ReportParsed({"--per=process"}).options.grouping() == Grouping::kProcess);
  CHECK(ReportParsed({"--merge"}).options.grouping() == Grouping::kAll);
  CHECK(ReportParsed({"--merge", "--per=thread"}).error != "");
  CHECK(ReportParsed({"--view=flow", "--per=thread"}).error ==
        "report: --per does not apply to --view=flow");
  CHECK(ReportParsed({"--view=threads", "--merge"}).error ==
        "report: --merge does not apply to --view=threads");
  CHECK(ReportParsed({"--view=wakers", "--min-percent=1"}).error ==
        "report: --min-percent does not apply to --view=wakers");
  CHECK(ReportParsed({"--view=wakers", "--min-percent=0"}).error == "");
}

TEST_CASE("report options: what views can be sorted by") {
  CHECK(ReportParsed({"--sort=name"}).options.shown.sort == SortKey::kName);
  CHECK(ReportParsed({"--view=invocations"}).options.shown.sort == SortKey::kEntry);
  CHECK(ReportParsed({"--view=threads"}).options.shown.sort == SortKey::kEntry);
  CHECK(ReportParsed({"--view=wakers"}).options.shown.sort == SortKey::kTotal);
  CHECK(ReportParsed({"--view=wakers", "--sort=calls"}).options.shown.sort ==
        SortKey::kCalls);
  CHECK(ReportParsed({"--view=flow", "--sort=total"}).error ==
        "report: --sort does not apply to --view=flow, which is in order of time");
  CHECK(ReportParsed({"--view=threads", "--sort=name"}).error ==
        "report: --view=threads cannot be sorted by name, only by entry or total");
  CHECK(ReportParsed({"--sort=cum"}).options.shown.sort == SortKey::kTotal);
  CHECK(ReportParsed({"--sort=base"}).options.shown.sort == SortKey::kSelf);
  CHECK(ReportParsed({"--columns=base%,cum,p50"}).options.shown.columns ==
        std::vector{reader::Column::kSelfPercent, reader::Column::kTotal,
                    reader::Column::kP50});
  CHECK(ReportParsed({"--sort=x"}).error ==
        "--sort: \"x\" is not total, self, calls, name or entry");
}

TEST_CASE("report options: what needs the kernel's records") {
  CHECK(ReportParsed({"--clock=cpu"}).options.needs_kernel() == "--clock=cpu");
  CHECK(ReportParsed({"--clock=off-cpu"}).options.clock == ReportClock::kOffCpu);
  CHECK(ReportParsed({"--all-threads"}).options.needs_kernel() == "--all-threads");
  CHECK(ReportParsed({"--view=wakers"}).options.needs_kernel() == "--view=wakers");
  CHECK(ReportParsed({"--view=flow", "--clock=wall"}).error == "");
  CHECK(ReportParsed({"--view=flow", "--clock=cpu"}).error ==
        "report: --clock does not apply to --view=flow, which shows all time");
}

TEST_CASE("report options: columns in the order in which they are asked for") {
  using reader::Column;
  CHECK(
      ReportParsed({"--view=flat", "--columns=p99,calls,p99.9"}).options.shown.columns ==
      std::vector{Column::kP99, Column::kCalls, Column::kP999});
  CHECK(ReportParsed({"--view=tree", "--columns=calls,on-cpu"}).options.needs_kernel() ==
        "--columns=on-cpu");
}

TEST_CASE("report options: filters") {
  const ReportParsed parsed({"-F", "a*", "-F", "b", "-N", "c", "-D", "3", "-t", "10us",
                             "-r", "1ms~2ms", "-n", "5", "file"});
  CHECK(parsed.error == "");
  CHECK(parsed.options.paths == std::vector<std::string>{"file"});
  CHECK(parsed.options.filter.only == std::vector<std::string>{"a*", "b"});
  CHECK(parsed.options.filter.except == std::vector<std::string>{"c"});
  CHECK(parsed.options.filter.max_depth == 3);
  CHECK(parsed.options.filter.min_duration_ns == 10'000);
  CHECK(parsed.options.filter.from_ns == 1'000'000);
  CHECK(parsed.options.filter.until_ns == 2'000'000);
  CHECK(parsed.options.shown.limit == 5);
  CHECK(ReportParsed({"-t", "-1us"}).error == "--min-duration: \"-1us\" is negative");
  CHECK(ReportParsed({"-t", "5"}).error ==
        "--min-duration: \"5\" is not a time such as 1.5ms, 20us, 300ns or 2s");
  CHECK(ReportParsed({"-n", "-1"}).error == "--limit: \"-1\" is negative");
  CHECK(ReportParsed({"--min-percent", "101"}).error ==
        "--min-percent: \"101\" is not a number from 0 to 100");
  CHECK(ReportParsed({"--pid", ""}).error == "--pid: the value is empty");
}

TEST_CASE("report options: threads by process, thread and program") {
  testing::RecordScript script;
  const reader::ThreadIndex one = script.program(10, "one");
  const reader::ThreadIndex two = script.program(20, "two");
  const reader::ThreadIndex helper =
      script.thread(script.definitions.thread(two)->process, 21, "helper");
  const auto wanted = [&](std::vector<std::string> arguments) {
    const ReportParsed parsed(std::move(arguments));
    CHECK(parsed.error == "");
    CHECK(parsed.options.has_thread_filter());
    std::string found;
    for (const reader::ThreadIndex thread : {one, two, helper}) {
      found += parsed.options.wants_thread(script.definitions, thread) ? 'y' : 'n';
    }
    CHECK_FALSE(parsed.options.wants_thread(script.definitions, reader::kNoIndex));
    return found;
  };
  CHECK(wanted({"--pid", "20"}) == "nyy");
  CHECK(wanted({"--pid=10,20"}) == "yyy");
  CHECK(wanted({"--tid", "10", "--tid", "21"}) == "yny");
  CHECK(wanted({"--pid=20", "--tid=10"}) == "nnn");
  CHECK(wanted({"--process", "t*"}) == "nyy");
  CHECK(wanted({"--process", "/bin/o*"}) == "ynn");
  CHECK(wanted({"--process", "bin"}) == "nnn");
}

}  // namespace
}  // namespace arctrace::cli
