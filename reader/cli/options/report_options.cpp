#include "reader/cli/options/report_options.hpp"

#include <algorithm>
#include <functional>

namespace arctrace::cli {
namespace {

void add_min_duration(CLI::App& app, uint64_t& min_duration_ns) {
  app.add_option_function<std::string>(
         "-t,--min-duration",
         [&min_duration_ns](const std::string& text) {
           const absl::StatusOr<int64_t> parsed = parse_time_ns(text);
           if (!parsed.ok() || *parsed < 0) {
             throw CLI::ValidationError(
                 "--min-duration", parsed.ok() ? "\"" + text + "\" is negative"
                                               : std::string(parsed.status().message()));
           }
           min_duration_ns = static_cast<uint64_t>(*parsed);
         },
         "without calls that took less, such as 10us; calls that are open at the end "
         "stay")
      ->type_name("TIME");
}

void add_filters(CLI::App& app, ReportOptions& options) {
  const std::string group = "Filters";
  const auto add_list = [&](const char* name, auto& list, const char* type,
                            const char* help) {
    app.add_option(name, list, help)
        ->delimiter(',')
        ->check(not_empty())
        ->allow_extra_args(false)
        ->type_name(type)
        ->group(group);
  };
  add_list("--pid", options.pids, "PID,...", "only these processes");
  add_list("--tid", options.tids, "TID,...", "only these threads");
  app.add_flag("--all-threads", options.all_threads,
               "threads too that have no records of their own, and stand in the kernel's")
      ->group(group);
  const auto add_globs = [&](const char* name, std::vector<std::string>& globs,
                             const char* help) {
    app.add_option(name, globs, help)
        ->type_name("GLOB")
        ->allow_extra_args(false)
        ->group(group);
  };
  add_globs(
      "--process", options.processes,
      "only processes whose program GLOB matches: its name, or its path if GLOB has "
      "a /; may be repeated");
  add_globs("-F,--function", options.filter.only,
            "only functions that GLOB matches, and what they call; may be repeated");
  add_globs("-N,--exclude", options.filter.except,
            "without functions that GLOB matches, and what they call; may be repeated");
  app.add_option("-D,--depth", options.filter.max_depth,
                 "at most N shown frames on top of each other")
      ->type_name("N")
      ->group(group);
  add_time_range_option(app, options.range)->group(group);
  add_min_duration(app, options.filter.min_duration_ns);
  app.get_option("--min-duration")->group(group);
}

void add_looks(CLI::App& app, ReportOptions& options) {
  const std::string group = "Rows and looks";
  add_choice<reader::SortKey>(
      app, "--sort", options.sort,
      {{"cum", reader::SortKey::kCum},
       {"base", reader::SortKey::kBase},
       {"calls", reader::SortKey::kCalls},
       {"name", reader::SortKey::kName},
       {"entry", reader::SortKey::kEntry}},
      "order of rows; entry: as they were first seen. invocations, threads: entry, "
      "others: cum")
      ->group(group);
  app.add_option("-n,--limit", options.shown.limit, "at most N rows in each table")
      ->check(not_negative())
      ->type_name("N")
      ->group(group);
  app.add_option(
         "--min-percent", options.shown.min_percent,
         "tree, flat, arcs, kinds, log-rt: without rows below P percent of the time")
      ->type_name("P")
      ->check(from_to(0, 100))
      ->group(group);
  app.add_flag("--lines", options.shown.lines, "file:line of functions")->group(group);
  app.add_flag("--full-names", options.full_names,
               "no name is cut to the terminal's width")
      ->group(group);
  add_choice<When>(
      app, "--color", options.color,
      {{"auto", When::kAuto}, {"always", When::kAlways}, {"never", When::kNever}},
      "auto: on a terminal, unless NO_COLOR is set")
      ->group(group);
  app.add_flag("--no-header", options.no_header, "only the view, no facts and no sums")
      ->group(group);
  app.add_flag("--debuginfod", options.download,
               "get debug files from the servers in DEBUGINFOD_URLS")
      ->group(group);
}

}  // namespace

reader::Grouping ReportOptions::grouping() const {
  if (merge) return reader::Grouping::kAll;
  if (per.has_value()) return *per;
  const bool is_table =
      view == View::kFlat || view == View::kArcs || view == View::kKinds;
  return is_table ? reader::Grouping::kAll : reader::Grouping::kThread;
}

bool ReportOptions::wants_thread(const reader::Definitions& definitions,
                                 reader::ThreadIndex thread) const {
  const reader::Thread* facts = definitions.thread(thread);
  const reader::Process* process = definitions.process_of(thread);
  const auto has = [](const std::vector<uint32_t>& list, uint32_t value) {
    return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
  };
  if (facts == nullptr || !has(tids, facts->tid)) return false;
  if (!has(pids, definitions.pid_of(thread))) return false;
  if (processes.empty()) return true;
  const std::string program = process == nullptr ? "" : process->executable;
  const std::string name = program.substr(program.rfind('/') + 1);
  return std::any_of(processes.begin(), processes.end(), [&](const std::string& glob) {
    return reader::glob_match(glob, glob.find('/') == std::string::npos ? name : program);
  });
}

void add_report_options(CLI::App& app, ReportOptions& options) {
  add_file_option(app, options.path);
  add_choice<View>(app, "--view", options.view,
                   {{"tree", View::kTree},
                    {"flat", View::kFlat},
                    {"arcs", View::kArcs},
                    {"kinds", View::kKinds},
                    {"flow", View::kFlow},
                    {"invocations", View::kInvocations},
                    {"log-rt", View::kLogRt},
                    {"threads", View::kThreads},
                    {"wakers", View::kWakers}},
                   "what to show")
      ->default_str("tree");
  add_format_option(app, options.format);
  add_choice<reader::ReportClock>(
      app, "--clock", options.clock,
      {{"wall", reader::ReportClock::kWall},
       {"cpu", reader::ReportClock::kCpu},
       {"off-cpu", reader::ReportClock::kOffCpu}},
      "what base, cum and the shares are of: all time, or only that on or off a CPU; "
      "needs record --kernel")
      ->default_str("wall");
  CLI::Option* per = add_choice<reader::Grouping>(
      app, "--per", options.per,
      {{"thread", reader::Grouping::kThread}, {"process", reader::Grouping::kProcess}},
      "tree, flat, arcs, kinds, log-rt: a table for each. Without: flat, arcs and kinds "
      "have one for all, the others one for each thread");
  app.add_flag("--merge", options.merge,
               "tree, flat, arcs, kinds, log-rt: one table for all")
      ->excludes(per);
  add_filters(app, options);
  add_looks(app, options);
  app.footer(
      "Views: tree (call trees), flat (a line for each function), arcs (each function\n"
      "with its callers and callees), kinds (what well-known library functions do: "
      "locks,\n"
      "I/O, allocation ...), flow (each entry, exit and event in order of time),\n"
      "invocations (a row for each call), log-rt (the trees for programs to read); of\n"
      "what the kernel recorded: threads (when each ran, waited for a CPU, was "
      "blocked),\n"
      "wakers (who woke whom, in which frames). What the kernel did is in functions "
      "K:...\n"
      "Base is time in the function itself, cum with all that it called. RL is how "
      "often\n"
      "the function stands on the path; cum of a function counts recursion once.\n"
      "\n"
      "Filters: what is not shown leaves its time to the nearest shown frame around it,\n"
      "in the end to the thread: the sums stay right. A time range counts the time in "
      "it,\n"
      "and the calls that overlap it. In a GLOB * and ? are special, all else is "
      "itself;\n"
      "C++ functions match with or without their parameters. Totals below the report "
      "are\n"
      "those of the whole trace; frames and orphans those of the threads that are "
      "shown.\n"
      "\n"
      "Ctrl-C ends the reading and shows what was read so far.");
}

const char* ReportOptions::needs_kernel() const {
  if (view == View::kThreads) return "--view=threads";
  if (view == View::kWakers) return "--view=wakers";
  if (all_threads) return "--all-threads";
  switch (clock) {
    case reader::ReportClock::kCpu:
      return "--clock=cpu";
    case reader::ReportClock::kOffCpu:
      return "--clock=off-cpu";
    case reader::ReportClock::kWall:
      break;
  }
  return nullptr;
}

absl::Status complete_report_options(ReportOptions& options) {
  if (!options.has_groups() && (options.per.has_value() || options.merge)) {
    return absl::InvalidArgumentError(
        "report: --per and --merge do not go with flow, invocations, threads and wakers");
  }
  if (!options.has_groups() && options.shown.min_percent > 0) {
    return absl::InvalidArgumentError(
        "report: --min-percent does not go with flow, invocations, threads and wakers");
  }
  if (options.view == View::kFlow && options.sort.has_value()) {
    return absl::InvalidArgumentError(
        "report: --sort does not go with flow: it is in order of time");
  }
  if (options.view == View::kInvocations && options.sort == reader::SortKey::kCalls) {
    return absl::InvalidArgumentError(
        "report: --sort=calls does not go with invocations: each is one call");
  }
  if (options.clock != reader::ReportClock::kWall &&
      (options.view == View::kFlow || options.is_of_schedule())) {
    return absl::InvalidArgumentError(
        "report: --clock does not go with flow, threads and wakers: they are of all "
        "time");
  }
  if (options.view == View::kThreads && options.sort.has_value() &&
      options.sort != reader::SortKey::kEntry && options.sort != reader::SortKey::kCum) {
    return absl::InvalidArgumentError(
        "report: threads are sorted by entry (time) or by cum (the longest first)");
  }
  if (options.view == View::kWakers && options.sort.has_value() &&
      options.sort != reader::SortKey::kCalls && options.sort != reader::SortKey::kCum) {
    return absl::InvalidArgumentError(
        "report: wakers are sorted by cum (time blocked) or by calls (wake-ups)");
  }
  options.filter.from_ns = options.range.from_ns;
  options.filter.until_ns = options.range.until_ns;
  const bool in_order_of_time =
      options.view == View::kInvocations || options.view == View::kThreads;
  options.shown.sort = options.sort.value_or(in_order_of_time ? reader::SortKey::kEntry
                                                              : reader::SortKey::kCum);
  return absl::OkStatus();
}

}  // namespace arctrace::cli
