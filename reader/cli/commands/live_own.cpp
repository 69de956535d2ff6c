#include "reader/cli/commands/live_own.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/commands/live_lines.hpp"
#include "reader/cli/commands/live_show.hpp"
#include "reader/cli/record/printed_events.hpp"
#include "reader/cli/record/watched_session.hpp"
#include "reader/live/live_reader.hpp"
#include "reader/render/output.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/terminal/screen.hpp"
#include "reader/trace/text_escape.hpp"
#include "src/recording/child_process.hpp"
#include "src/recording/recording.hpp"

namespace arctrace::cli {
namespace {

using recording::Recording;
using recording::RecordOptions;
using recording::SignalScope;

bool is_command(const LiveOptions& options) { return !options.record.command.empty(); }

// What the screen is of.
std::string title_of(const RecordOptions& record) {
  return record.command.empty()
             ? absl::StrCat("process ", absl::StrJoin(record.pids, ", "))
             : reader::escaped(absl::StrJoin(record.command, " "));
}

// A recording that nobody collects, which has begun. Error: what is said of it, and
// `exit_status` is what this process is to exit with, if that is not 2.
absl::StatusOr<std::unique_ptr<Recording>> start(const RecordOptions& record,
                                                 const SignalScope& signals,
                                                 PrintedEvents& events,
                                                 int& exit_status) {
  exit_status = 2;
  absl::StatusOr<std::unique_ptr<Recording>> recording =
      Recording::create(record, Recording::Collecting::kNot, events);
  if (!recording.ok()) return recording;
  absl::Status begun;
  if (record.command.empty()) {
    begun = (*recording)->join();
  } else {
    begun = (*recording)->start(true, signals);
    if (!begun.ok()) exit_status = recording::exit_status_of(begun);
  }
  if (!begun.ok()) return begun;
  return recording;
}

// Prints why there is no session; returns the exit status, or an error whose status is 2.
absl::StatusOr<int> not_started(const absl::Status& why, int exit_status) {
  if (exit_status == 2) return why;
  reader::print_message(std::string(why.message()));
  return exit_status;
}

// Until what is recorded has ended and the user leaves. What the command writes appears
// then. Returns 0 if `ended` says how the command ended, else the exit status.
absl::StatusOr<int> show(const LiveOptions& options, const SignalScope& signals,
                         std::optional<Recording::End>& ended) {
  PrintedEvents events;
  KeptOutput kept;
  absl::StatusOr<std::unique_ptr<terminal::Screen>> screen = open_live_screen();
  if (!screen.ok()) return screen.status();
  kept.redirect();
  int exit_status = 0;
  absl::StatusOr<std::unique_ptr<Recording>> session =
      start(options.record, signals, events, exit_status);
  kept.restore();
  events.hold();
  if (!session.ok()) {
    screen->reset();
    return not_started(session.status(), exit_status);
  }
  absl::StatusOr<WatchedSession> watched =
      WatchedSession::open((*session)->buffer().path());
  if (!watched.ok()) return watched.status();
  absl::StatusOr<int> left = show_session(**screen, title_of(options.record), *watched,
                                          &**session, signals, ended);
  screen->reset();
  (*session)->close();
  if (!left.ok() || ended.has_value()) return left;
  if (!is_command(options)) {
    reader::print_message("the processes go on, and are recorded no longer");
    return left;
  }
  reader::print_message("the command goes on, and is recorded no longer");
  ended = Recording::End{.wait_status = (*session)->child().wait(signals, [] {})};
  return left;
}

// To the end of what is recorded. Returns as show() does.
absl::StatusOr<int> print(const LiveOptions& options, const SignalScope& signals,
                          std::optional<Recording::End>& ended) {
  PrintedEvents events;
  int exit_status = 0;
  absl::StatusOr<std::unique_ptr<Recording>> session =
      start(options.record, signals, events, exit_status);
  if (!session.ok()) return not_started(session.status(), exit_status);
  const absl::StatusOr<WatchedSession> watched =
      WatchedSession::open((*session)->buffer().path());
  if (!watched.ok()) return watched.status();
  absl::StatusOr<reader::SessionCopy> copy = watched->make_copy();
  if (!copy.ok()) return copy.status();
  reader::Output output;
  std::signal(SIGPIPE, SIG_IGN);  // a command goes on all the same
  reader::Symbolizer symbolizer;
  reader::LiveReader reader(*std::move(copy), symbolizer, true);
  LiveLines lines(options, output);
  while (!ended.has_value()) {
    ended = (*session)->wait_for_end(signals, kLiveTickNs);
    (*session)->poll();
    if (ended.has_value()) (*session)->close();
    if (!output.good()) {
      // What a command does, its end says; of others there is nothing more to tell.
      if (!is_command(options)) return output.finish();
      continue;
    }
    if (absl::Status s = reader.tick(lines, ended.has_value()); !s.ok()) return s;
  }
  print_missed(reader.copy().missed_blocks());
  lines.finish();
  if (is_command(options)) return 0;
  if (absl::Status s = output.finish(); !s.ok()) return s;
  return ended->is_interrupted ? kStatusInterrupted : 0;
}

}  // namespace

absl::StatusOr<int> live_own(const LiveOptions& options) {
  std::optional<Recording::End> ended;
  {
    const SignalScope signals;
    absl::StatusOr<int> done =
        options.plain ? print(options, signals, ended) : show(options, signals, ended);
    if (!done.ok() || *done != 0 || !is_command(options)) return done;
  }
  return recording::exit_like(ended->wait_status == -1 ? SIGINT : ended->wait_status);
}

}  // namespace arctrace::cli
