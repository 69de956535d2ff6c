// arctrace live: shows what a session records, while it does.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/commands/live_session.hpp"
#include "reader/cli/options/dump_filter.hpp"
#include "reader/cli/options/options.hpp"
#include "reader/cli/options/record_options.hpp"
#include "reader/cli/options/trace_options.hpp"
#include "reader/cli/record/open_trace.hpp"
#include "reader/cli/record/watched_session.hpp"
#include "reader/live/live_reader.hpp"
#include "reader/render/output.hpp"
#include "reader/render/session_text.hpp"
#include "reader/render/terminal.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/terminal/screen.hpp"
#include "reader/trace/text_escape.hpp"
#include "src/recorder/buffer/session_directory.hpp"
#include "src/recording/recording.hpp"

namespace arctrace::cli {
namespace {

constexpr const char* kOwnGroup = "Recording a command, or with --pid";
constexpr const char* kPidHelp =
    "record these processes, which run already, and show what they do: x86-64 only; with "
    "SESSION or a command, and --plain: print only their records";

// Returns the session to show if none is named: the only one there is.
absl::StatusOr<std::string> only_session() {
  std::vector<std::string> names, paths;
  for (const recorder::FoundSession& found : recorder::find_sessions()) {
    if (found.user != geteuid()) continue;
    const absl::StatusOr<WatchedSession> session = WatchedSession::open(found.path);
    if (!session.ok() || session->is_over()) continue;
    names.push_back(found.name);
    paths.push_back(found.path);
  }
  if (paths.size() == 1) return paths.front();
  return absl::NotFoundError(
      paths.empty()
          ? "live: there is no session; arctrace live -- COMMAND makes one, and "
            "arctrace record and create do"
          : absl::StrCat("live: which session? There are ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<int> follow(const LiveOptions& options, const std::string& path) {
  absl::StatusOr<WatchedSession> session = WatchedSession::open(path);
  if (!session.ok()) return session.status();
  absl::StatusOr<reader::SessionCopy> copy = session->make_copy();
  if (!copy.ok()) return copy.status();
  const std::unique_ptr<recorder::ActingWithRights> rights = act_as_owner(path);
  const recording::SignalScope signals;
  reader::Output output;  // from here on, a reader that goes away ends this process
  reader::Symbolizer symbolizer;
  reader::LiveReader reader(*std::move(copy), symbolizer, true);
  LiveLines lines(options, output);
  bool has_warned = false;
  for (bool is_interrupted = false;;) {
    const bool is_over = session->is_over();
    if (!is_over) session->follow_files(reader.copy());
    if (session->lacks_file() && !std::exchange(has_warned, true)) {
      reader::print_warning(
          "the collector's file cannot be read: records that it has taken out of the "
          "buffer are missing, names too");
    }
    if (absl::Status s = reader.tick(lines, is_over || is_interrupted); !s.ok()) return s;
    if (!output.good()) break;
    if (is_over || is_interrupted) {
      print_missed(reader.copy().missed_blocks());
      lines.finish();
      if (absl::Status s = output.finish(); !s.ok()) return s;
      return is_interrupted ? kStatusInterrupted : 0;
    }
    is_interrupted = signals.take_end(kLiveTickNs) != 0;
  }
  return output.finish();
}

absl::StatusOr<int> show(const std::string& path, bool full_names) {
  absl::StatusOr<WatchedSession> session = WatchedSession::open(path);
  if (!session.ok()) return session.status();
  const recording::SignalScope signals;
  absl::StatusOr<std::unique_ptr<terminal::Screen>> screen = open_live_screen();
  if (!screen.ok()) return screen.status();
  std::optional<recording::Recording::End> none;
  return show_session(**screen, reader::escaped(path), full_names, *session, nullptr,
                      signals, none);
}

// Shows a session that exists already.
absl::StatusOr<int> live_of_session(const LiveOptions& options) {
  const std::vector<std::string>& target = options.target;
  if (target.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("live: ", target[0], " and ", target[1],
                     ": it is one SESSION, or -- and a command with its arguments"));
  }
  absl::StatusOr<std::string> path =
      target.empty() ? only_session() : recorder::find_session(target.front());
  if (!path.ok()) return path.status();
  return options.plain ? follow(options, *path) : show(*path, options.full_names);
}

bool names_command(const LiveOptions& options) {
  return !options.target.empty() && options.target.front().empty();
}

// Whether this command makes the session that it shows.
bool makes_session(const LiveOptions& options) {
  return names_command(options) || (options.target.empty() && !options.pids.empty());
}

absl::StatusOr<int> live(LiveOptions& options) {
  const bool joins = options.target.empty() && !options.pids.empty();
  if (joins) {
    options.record.pids.assign(options.pids.begin(), options.pids.end());
    options.pids.clear();
  }
  if (!options.plain && (options.format != OutputFormat::kText || !options.pids.empty() ||
                         !options.tids.empty() || !options.where.empty())) {
    return absl::InvalidArgumentError(
        "live: --format, --tid and --where, and --pid with a session or a command, are "
        "about the lines of --plain");
  }
  options.filter.pids.insert(options.pids.begin(), options.pids.end());
  options.filter.tids.insert(options.tids.begin(), options.tids.end());
  if (!joins && !names_command(options)) return live_of_session(options);
  if (!joins) {
    options.record.command.assign(options.target.begin() + 1, options.target.end());
    if (options.record.command.empty()) {
      return absl::InvalidArgumentError("live: no command after --");
    }
  }
  if (const auto problem = recording::find_problem(options.record.filter)) {
    reader::print_error("live: " + problem->text());
    return 2;
  }
  return live_own(options);
}

}  // namespace

Runner add_live(CLI::App& root) {
  auto options = std::make_shared<LiveOptions>();
  CLI::App* app =
      root.add_subcommand("live", "show what a session records, while it does");
  app->add_flag(
      "--plain", options->plain,
      "print a line for each record as it comes, as dump does, instead of the screen");
  add_format_option(*app, options->format);
  add_thread_options(*app, options->pids, options->tids, "-p,--pid", kPidHelp);
  add_where_option(*app, options->where, "; with --plain");
  add_full_names_option(*app, options->full_names);
  const size_t about_screen = app->get_options().size();
  add_buffer_size_option(*app, options->record.buffer);
  add_kernel_options(*app, options->record.kernel);
  add_traced_options(*app, options->record);
  for (size_t i = about_screen; i < app->get_options().size(); ++i) {
    app->get_options()[i]->group(kOwnGroup);
  }
  app->add_option("session", options->target,
                  "a session's name, or its buffer's file; or after -- a command, which "
                  "gets a session of its own")
      ->type_name("SESSION");
  app->footer(
      "The screen shows the functions, or paths, with the most time of their own in\n"
      "the last 5 s, each with its history; what the chosen thread has open, and\n"
      "since when, and whether it is on a CPU; rates, losses and how full the buffer\n"
      "is. With the kernel's records (--kernel) functions have their time on a CPU\n"
      "too; without them /proc says what the chosen thread does. Below the rates stand\n"
      "the classes that are off and the filters in force, and the newest marks, each if\n"
      "there is any; --plain has them as records, ENABLED and MARK.\n"
      "Keys: q leaves, p pauses, s sorts by the next column, v changes between\n"
      "functions and paths, / filters by name, arrows and pages choose a row, Enter\n"
      "shows the paths through it and Escape goes back, t chooses the next thread,\n"
      "k hides the stack, S writes a snapshot.\n"
      "\n"
      "With --plain, records come in order of time, some tens of milliseconds after\n"
      "they were written; names and other definitions may come later than the time\n"
      "that they have. Nothing is taken away from a collector: the session's buffer\n"
      "is only read, and the file that its collector writes. Of a session that has\n"
      "run for a while, what its buffer still has comes first. Without SESSION it is\n"
      "the only one that there is.\n"
      "\n"
      "With --pid and no SESSION, running processes are joined as arctrace record\n"
      "--pid does, until they have ended or you leave; then they go on.\n"
      "\n"
      "live ends with the session, or at Ctrl-C with status 130. With a command,\n"
      "Ctrl-C goes to that, and the exit status is the command's; what the command\n"
      "prints on standard output goes to standard error.");
  return [options, app]() -> absl::StatusOr<int> {
    for (const CLI::Option* option : app->get_options()) {
      if (makes_session(*options) || option->count() == 0 ||
          option->get_group() != kOwnGroup) {
        continue;
      }
      return absl::InvalidArgumentError(absl::StrCat(
          "live: ", option->get_name(),
          " says what is recorded of a command, which follows --, or with --pid; "
          "arctrace ctl changes what a session records"));
    }
    return live(*options);
  };
}

}  // namespace arctrace::cli
