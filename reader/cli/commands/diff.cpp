// arctrace diff: what changed between two programs, or two versions of one, by function.
#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reader/analysis/function_totals.hpp"
#include "reader/analysis/tree_groups.hpp"
#include "reader/cli/commands/commands.hpp"
#include "reader/cli/commands/replay_setup.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/cli/options/report_options.hpp"
#include "reader/cli/record/open_trace.hpp"
#include "reader/render/output.hpp"
#include "reader/report/diff_table.hpp"
#include "reader/report/summary_lines.hpp"
#include "reader/streams/replay_run.hpp"
#include "reader/symbols/name_patterns.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/trace/text_escape.hpp"
#include "reader/trace/trace.hpp"
#include "reader/trace/trace_files.hpp"
#include "src/recording/patterns/function_pattern.hpp"

namespace arctrace::cli {
namespace {

using reader::SortKey;

constexpr const char* kDiffNotes =
    "Functions are compared by their names and the file names of their modules; those\n"
    "of a program that only one side runs with those of one that only the other side\n"
    "runs, as of ./old and ./new, which a line says. With several runs a side, as in\n"
    "arctrace diff A1 A2 A3 -- B1 B2 B3, sums are means, and a difference that is not\n"
    "larger than that of 95 % of comparisons of equal programs is marked as noise\n"
    "(Student's t test). With one run the noise is not known. On one side, the files of\n"
    "a recording with --size-limit are one run.";

struct DiffOptions {
  std::vector<std::string> before, after;
  OutputFormat format = OutputFormat::kText;
  reader::ReportClock clock = reader::ReportClock::kWall;
  SortKey sort = SortKey::kSelf;
  uint64_t limit = UINT64_MAX;
  std::vector<std::string> only, except;  // patterns
  TerminalOptions terminal;
};

absl::Status complete(DiffOptions& options) {
  if (options.after.empty() && options.before.size() == 2) {
    options.after = {std::move(options.before.back())};
    options.before.pop_back();
  }
  if (!options.before.empty() && !options.after.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "diff: needs two files, or several runs of each side as in A1 A2 -- B1 B2");
}

// `files`: the files of one recording.
absl::StatusOr<reader::DiffRun> read_run(const std::vector<std::string>& files,
                                         reader::ReportClock clock, reader::DiffSide side,
                                         reader::FunctionDiff& diff) {
  const std::vector<std::string> paths = files_or_sessions(files);
  absl::StatusOr<reader::Trace> trace = open_with_abandoned_buffer(paths, {});
  if (!trace.ok()) return trace.status();
  const std::unique_ptr<recorder::ActingWithRights> rights = act_as_owner(paths.front());
  warn_of_stamps(trace->session());
  reader::Symbolizer symbolizer{reader::SymbolOptions{}};
  if (clock != reader::ReportClock::kWall && !trace->definitions().has_dispatches()) {
    return lacks_kernel_records(files.front(),
                                absl::StrCat("--clock=", reader::clock_name(clock)));
  }
  reader::ReplayOptions replay_options = reader::replay_options_of(*trace);
  replay_options.clock = clock;
  reader::Replay replay(trace->definitions(), &symbolizer, replay_options);
  ReadProgress progress(*trace);
  reader::ReplayWatch watch;
  watch.goes = [&progress](const reader::ReadSoFar& so_far) {
    progress.update(so_far);
    return true;
  };
  if (const auto read = run_replay(*trace, replay, watch); !read.ok()) {
    return read.status();
  }
  diff.add_run(side, replay);
  const reader::RecordedStates recorded(replay);
  const reader::TreeGroups groups(replay, reader::Grouping::kAll);
  const reader::TreeGroup& all = groups.groups().front();
  reader::DiffRun run;
  run.path = files.front();
  run.summary = trace->summary();
  run.wall_ns = reader::wall_ns(replay);
  run.own_work_ns = own_work_ps(*all.tree, replay.functions(), all.root) / 1000;
  run.own_wall_ns = std::min(reader::own_work_wall_ns(replay), run.wall_ns);
  run.clock_ns = (*all.tree)[all.root].total_ns;
  run.left_out.assign(recorded.causes().begin(), recorded.causes().end());
  return run;
}

// The changes of functions that pass -F and -N.
std::vector<reader::FunctionChange> shown_changes(const DiffOptions& options,
                                                  const reader::FunctionDiff& diff) {
  std::vector<reader::FunctionChange> changes = diff.changes(options.sort);
  std::vector<std::string> names;
  names.reserve(changes.size());
  for (const reader::FunctionChange& change : changes) names.push_back(change.name);
  if (const std::string problem = recording::unmatched_pattern(options.only, names);
      !problem.empty()) {
    reader::print_warning(reader::escaped(problem));
  }
  const reader::NamePatterns only(options.only);
  const reader::NamePatterns except(options.except);
  std::erase_if(changes, [&](const reader::FunctionChange& change) {
    return (!options.only.empty() && !only.match(change.name)) ||
           except.match(change.name);
  });
  return changes;
}

absl::StatusOr<int> diff(const DiffOptions& options) {
  reader::FunctionDiff diff;
  reader::DiffTable table{diff, {}, {}, {}, options.terminal.full_names, options.clock};
  for (const auto side : {reader::DiffSide::kBefore, reader::DiffSide::kAfter}) {
    const bool is_before = side == reader::DiffSide::kBefore;
    for (const std::vector<std::string>& files :
         reader::group_parts(is_before ? options.before : options.after)) {
      absl::StatusOr<reader::DiffRun> run = read_run(files, options.clock, side, diff);
      if (!run.ok()) return run.status();
      (is_before ? table.before : table.after).push_back(*std::move(run));
    }
  }
  table.changes = shown_changes(options, diff);
  reader::ViewOptions shown;
  shown.sort = options.sort;
  shown.limit = options.limit;
  reader::Output output;
  if (options.format == OutputFormat::kJson) {
    reader::JsonWriter json(output.writer());
    json.begin_object();
    reader::write_diff_json(table, shown, json);
    json.end();
    json.finish();
  } else {
    shown.style = options.terminal.style();
    options.terminal.apply_to(output);
    reader::write_diff_text(table, shown, output.writer());
  }
  if (absl::Status s = output.finish(); !s.ok()) return s;
  return 0;
}

}  // namespace

Runner add_diff(CLI::App& root) {
  auto options = std::make_shared<DiffOptions>();
  CLI::App* app = root.add_subcommand(
      "diff", "show by function what changed between traces: A B, or A1 A2 -- B1 B2");
  app->add_option("files", options->before, "the trace before, and that after")
      ->type_name("FILE");
  app->add_option("--after", options->after,
                  "the traces after, if there are several; they may also follow --")
      ->type_name("FILE")
      ->expected(1, -1);
  add_format_option(*app, options->format);
  add_clock_option(*app, options->clock);
  take_arcflow_names(
      add_choice<SortKey>(
          *app, "--sort", options->sort,
          {{"self", SortKey::kSelf},
           {"total", SortKey::kTotal},
           {"calls", SortKey::kCalls},
           {"name", SortKey::kName}},
          "of what the largest differences come first; total: show it, too"))
      ->default_str("self");
  app->add_option("-n,--limit", options->limit, "show at most N functions")
      ->check(not_negative())
      ->type_name("N");
  add_pattern_option(*app, "-F,--function", options->only,
                     "show only functions that match PATTERN; may be repeated");
  add_pattern_option(*app, "-N,--exclude", options->except,
                     "hide functions that match PATTERN; may be repeated");
  add_terminal_options(*app, options->terminal, "Appearance");
  app->footer(kDiffNotes);
  return [options]() -> absl::StatusOr<int> {
    if (absl::Status s = complete(*options); !s.ok()) return s;
    return diff(*options);
  };
}

}  // namespace arctrace::cli
