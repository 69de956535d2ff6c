#include "reader/cli/options/report_options.hpp"

#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "reader/cli/options/options.hpp"
#include "reader/render/report_parts.hpp"

namespace arctrace::cli {
namespace {

using reader::Grouping;
using reader::ReportClock;
using reader::SortKey;
using reader::ViewType;

const std::vector<std::pair<std::string, SortKey>> kSortKeys = {
    {"total", SortKey::kTotal},
    {"self", SortKey::kSelf},
    {"calls", SortKey::kCalls},
    {"name", SortKey::kName},
    {"entry", SortKey::kEntry}};
const std::vector<std::pair<std::string, ReportClock>> kClocks = {
    {reader::clock_name(ReportClock::kWall), ReportClock::kWall},
    {reader::clock_name(ReportClock::kCpu), ReportClock::kCpu},
    {reader::clock_name(ReportClock::kOffCpu), ReportClock::kOffCpu}};

constexpr const char* kReportNotes =
    "What the kernel did for a thread appears as functions named K:...\n"
    "\n"
    "Self is the time in the function itself, total includes all that it called. RL is\n"
    "how often the function is on the path; total of a function counts recursion once.\n"
    "JSON has them as base_ns and cum_ns, as the arcflow reports call them.\n"
    "\n"
    "The time of a call that a filter hides goes to the nearest shown frame around\n"
    "it, or to the thread, so that the sums stay right. A time range counts the time\n"
    "within it, and the calls that overlap it. In a PATTERN, * stands for any\n"
    "characters, ? for one, [abc] and [!a-z] for one of a set, and \\ makes the next\n"
    "character plain, as in \"operator\\[]\"; re:EXPRESSION is an extended regular\n"
    "expression. C++ functions match by the names that reports show, and by whole ones.\n"
    "The sums below a report are those of the whole trace; frames and orphans are\n"
    "those of the threads shown.\n"
    "\n"
    "Ctrl-C ends the reading, and shows what has been read.";

// Returns the names of the views for which `holds`: "tree, flat".
template <class Holds>
std::string views_that(const Holds& holds) {
  std::string names;
  for (const ViewType& type : reader::view_types()) {
    if (holds(type)) absl::StrAppend(&names, names.empty() ? "" : ", ", type.name);
  }
  return names;
}

std::string grouped_views() {
  return views_that([](const ViewType& type) { return type.grouping.has_value(); });
}

// Returns a line for each view.
std::string views_help() {
  std::string text = "Views:\n";
  for (const ViewType& type : reader::view_types()) {
    text += "  ";
    reader::append_left(text, type.name, 15);
    absl::StrAppend(&text, type.help, "\n");
  }
  return text;
}

void add_view_option(CLI::App& app, ReportOptions& options) {
  std::vector<std::pair<std::string, const ViewType*>> choices;
  for (const ViewType& type : reader::view_types())
    choices.emplace_back(type.name, &type);
  add_choice<const ViewType*>(app, "--view", options.view, choices,
                              "what to show, as listed below")
      ->default_str(options.view->name);
}

void add_groups(CLI::App& app, ReportOptions& options) {
  CLI::Option* per = add_choice<Grouping>(
      app, "--per", options.per,
      {{"thread", Grouping::kThread}, {"process", Grouping::kProcess}},
      absl::StrCat("a table for each thread or process; with ", grouped_views(),
                   ". Without this option, ", views_that([](const ViewType& type) {
                     return type.grouping == Grouping::kAll;
                   }),
                   " have one table for all, the others one for each thread"));
  app.add_flag("--merge", options.merge,
               absl::StrCat("one table for all threads; with ", grouped_views()))
      ->excludes(per);
}

void add_columns(CLI::App& app, ReportOptions& options, const std::string& group) {
  std::vector<std::string> names;
  for (const reader::ColumnType& type : reader::column_types()) {
    names.emplace_back(type.name);
  }
  take_arcflow_names(
      app.add_option_function<std::vector<std::string>>(
          "--columns",
          [&options, names](const std::vector<std::string>& wanted) {
            options.shown.columns.clear();
            for (const std::string& name : wanted) {
              const auto types = reader::column_types();
              const auto found =
                  std::find_if(types.begin(), types.end(),
                               [&](const auto& type) { return name == type.name; });
              if (found == types.end()) {
                throw CLI::ValidationError("--columns", not_a_choice(name, names));
              }
              options.shown.columns.push_back(found->column);
            }
          },
          absl::StrCat("the columns of a table, in their order: ", either_of(names),
                       "; with ", views_that([](const ViewType& type) {
                         return type.columns != reader::TableColumns::kNone;
                       }),
                       ". Those of the times of single calls, avg to max, only with ",
                       views_that([](const ViewType& type) {
                         return type.columns == reader::TableColumns::kTimes;
                       }))))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("COLUMN,...")
      ->group(group);
}

void add_appearance(CLI::App& app, ReportOptions& options) {
  const std::string group = "Rows and appearance";
  take_arcflow_names(
      add_choice<SortKey>(
          app, "--sort", options.sort, kSortKeys,
          absl::StrCat("the order of rows; entry: as they were first entered. Default: "
                       "entry for ",
                       views_that([](const ViewType& type) {
                         return !type.sort_keys.empty() &&
                                type.sort_keys.front() == SortKey::kEntry;
                       }),
                       ", total for the others")))
      ->group(group);
  add_columns(app, options, group);
  app.add_option("-n,--limit", options.limit, "show at most N rows of each table")
      ->check(not_negative())
      ->type_name("N")
      ->group(group);
  app.add_option(
         "--min-percent", options.shown.min_percent,
         absl::StrCat("hide rows below P percent of the time; with ", grouped_views()))
      ->type_name("P")
      ->check(from_to(0, 100))
      ->group(group);
  app.add_flag("--lines", options.shown.lines, "show file:line of functions")
      ->group(group);
  add_terminal_options(app, options.terminal, group);
  app.add_flag("--no-header", options.no_header,
               "print only the view, without facts and sums of the trace")
      ->group(group);
  app.add_flag("--debuginfod", options.download,
               "download debug files from the servers in DEBUGINFOD_URLS")
      ->group(group);
}

// Returns the word of --sort for a value.
template <class Choice>
std::string word_of(const std::vector<std::pair<std::string, Choice>>& choices,
                    Choice wanted) {
  for (const auto& [word, choice] : choices) {
    if (choice == wanted) return word;
  }
  return {};
}

// Why the rows of the view cannot be sorted by `sort`; empty if they can.
std::string sort_problem(const ViewType& view, SortKey sort) {
  const auto keys = view.sort_keys;
  if (keys.empty()) {
    return absl::StrCat("--sort does not apply to --view=", view.name,
                        ", which is in order of time");
  }
  if (std::find(keys.begin(), keys.end(), sort) != keys.end()) return {};
  std::vector<std::string> words;
  for (const SortKey key : keys) words.push_back(word_of(kSortKeys, key));
  return absl::StrCat("--view=", view.name, " cannot be sorted by ",
                      word_of(kSortKeys, sort), ", only by ", either_of(words));
}

// Why the view cannot show these columns; empty if it can.
std::string columns_problem(const ViewType& view,
                            const std::vector<reader::Column>& columns) {
  if (columns.empty() || view.columns == reader::TableColumns::kTimes) return {};
  if (view.columns == reader::TableColumns::kNone) {
    return absl::StrCat("--columns does not apply to --view=", view.name);
  }
  for (const reader::ColumnType& type : reader::column_types()) {
    if (type.needs_times &&
        std::find(columns.begin(), columns.end(), type.column) != columns.end()) {
      return absl::StrCat("--view=", view.name, " has no column ", type.name,
                          ", which --view=flat has");
    }
  }
  return {};
}

// The first way in which the options contradict the view; empty if they do not.
std::string problem_of(const ReportOptions& options) {
  const ViewType& view = *options.view;
  if (!view.grouping.has_value()) {
    const char* option = options.per.has_value()         ? "--per"
                         : options.merge                 ? "--merge"
                         : options.shown.min_percent > 0 ? "--min-percent"
                                                         : nullptr;
    if (option != nullptr) {
      return absl::StrCat(option, " does not apply to --view=", view.name);
    }
  }
  if (options.clock != ReportClock::kWall && !view.has_clock) {
    return absl::StrCat("--clock does not apply to --view=", view.name,
                        ", which shows all time");
  }
  if (options.corrected && !view.can_be_corrected) {
    return absl::StrCat("--corrected does not apply to --view=", view.name,
                        ", which shows times as they were recorded");
  }
  if (!options.of.empty() && !view.can_be_of_functions) {
    return absl::StrCat(
        "--of does not apply to --view=", view.name, ", only to ",
        views_that([](const ViewType& type) { return type.can_be_of_functions; }));
  }
  if (!options.where.empty() && !view.shows_events) {
    return absl::StrCat(
        "--where does not apply to --view=", view.name, ", only to ",
        views_that([](const ViewType& type) { return type.shows_events; }),
        ", which shows events");
  }
  if (view.is_about_functions && options.filter.only.empty()) {
    return absl::StrCat("--view=", view.name, " needs -F FUNCTION");
  }
  if (std::string problem = columns_problem(view, options.shown.columns);
      !problem.empty()) {
    return problem;
  }
  return options.sort.has_value() ? sort_problem(view, *options.sort) : std::string();
}

// The options that `report` and `graph` have in common.
void add_common_options(CLI::App& app, ReportOptions& options, bool with_functions) {
  add_format_option(app, options.format);
  add_clock_option(app, options.clock);
  app.add_flag("--corrected", options.corrected,
               absl::StrCat("take what recording itself cost off all times, as far as it "
                            "is known; with ",
                            views_that([](const ViewType& type) {
                              return type.can_be_corrected;
                            })));
  add_groups(app, options);
  add_replay_filter_options(
      app, options,
      with_functions
          ? absl::StrCat(
                "show only functions that match PATTERN, and what they call; may be "
                "repeated. With ",
                views_that([](const ViewType& type) { return type.is_about_functions; }),
                ": the functions that the view is about")
          : "");
  add_appearance(app, options);
}

}  // namespace

void add_clock_option(CLI::App& app, ReportClock& clock) {
  add_choice<ReportClock>(app, "--clock", clock, kClocks,
                          "which time self, total and the shares are of: all, or only "
                          "that on or off a CPU, which needs record --kernel")
      ->default_str("wall");
}

Grouping ReportOptions::grouping() const {
  if (merge) return Grouping::kAll;
  return per.value_or(view->grouping.value_or(Grouping::kThread));
}

std::string ReportOptions::needs_kernel() const {
  if (view->needs != reader::KernelRecords::kNone) {
    return absl::StrCat("--view=", view->name);
  }
  if (all_threads) return "--all-threads";
  for (const reader::ColumnType& type : reader::column_types()) {
    if (type.needs != reader::KnownTimes::kNone &&
        std::find(shown.columns.begin(), shown.columns.end(), type.column) !=
            shown.columns.end()) {
      return absl::StrCat("--columns=", type.name);
    }
  }
  if (clock != ReportClock::kWall)
    return absl::StrCat("--clock=", reader::clock_name(clock));
  return {};
}

void add_report_options(CLI::App& app, ReportOptions& options) {
  add_files_option(app, options.paths);
  add_view_option(app, options);
  add_pattern_option(
      app, "--of", options.of,
      absl::StrCat(
          "of the slowest call of a function that matches PATTERN, "
          "instead of all time; with ",
          views_that([](const ViewType& type) { return type.can_be_of_functions; })));
  add_where_option(app, options.where,
                   absl::StrCat("; with ", views_that([](const ViewType& type) {
                                  return type.shows_events;
                                })))
      ->group("Filters");
  add_common_options(app, options, true);
  app.footer(views_help() + "These need a trace of record --kernel: " +
             views_that([](const ViewType& type) {
               return type.needs != reader::KernelRecords::kNone;
             }) +
             ".\n" + kReportNotes + "\n" + kFilesNote);
}

void add_graph_options(CLI::App& app, ReportOptions& options) {
  options.command = "graph";
  options.view = reader::find_view_type("graph");
  add_pattern_option(app, "function", options.filter.only,
                     "the function, or a PATTERN for several")
      ->required()
      ->expected(1);
  add_files_option(app, options.paths);
  add_common_options(app, options, false);
  app.footer(absl::StrCat(kReportNotes, "\n", kFilesNote));
}

absl::Status complete_report_options(ReportOptions& options) {
  if (const std::string problem = problem_of(options); !problem.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(options.command, ": ", problem));
  }
  options.take_range();
  options.shown.limit = options.limit.value_or(options.view->limit);
  if (options.view->is_about_functions) {
    options.functions = std::exchange(options.filter.only, {});
  }
  if (options.view->can_be_of_functions)
    options.functions = std::exchange(options.of, {});
  const auto keys = options.view->sort_keys;
  options.shown.sort =
      options.sort.value_or(keys.empty() ? SortKey::kEntry : keys.front());
  return absl::OkStatus();
}

}  // namespace arctrace::cli
