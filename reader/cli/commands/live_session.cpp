#include "reader/cli/commands/live_session.hpp"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "reader/cli/commands/commands.hpp"
#include "reader/cli/record/open_trace.hpp"
#include "reader/cli/record/printed_events.hpp"
#include "reader/cli/record/watched_session.hpp"
#include "reader/live/live_model.hpp"
#include "reader/live/live_reader.hpp"
#include "reader/live/thread_watch.hpp"
#include "reader/render/left_out.hpp"
#include "reader/render/output.hpp"
#include "reader/render/session_text.hpp"
#include "reader/streams/spools.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/terminal/live_screen.hpp"
#include "reader/terminal/screen.hpp"
#include "reader/trace/text_escape.hpp"
#include "src/buffer/clock.hpp"
#include "src/os/process_facts.hpp"
#include "src/recording/child_process.hpp"
#include "src/recording/events.hpp"
#include "src/recording/output_file.hpp"
#include "src/recording/recording.hpp"

namespace arctrace::cli {

void print_missed(uint64_t missed_blocks) {
  if (missed_blocks == 0) return;
  reader::print_warning(
      absl::StrCat("records of ", reader::count_text(missed_blocks, "block"),
                   " were gone before they could be read, and are not shown"));
}

void LiveLines::begin(const reader::Trace& trace, reader::Replay& replay) {
  const bool is_json = format_ == OutputFormat::kJson;
  definitions_ = &trace.definitions();
  events_.set_definitions(trace.definitions());
  describer_ = std::make_unique<reader::RecordDescriber>(
      trace, replay.resolver(), reader::DescribeOptions{false, is_json});
  printer_ = std::make_unique<reader::DumpPrinter>(trace, *describer_, output_,
                                                   reader::default_dump_fields(false));
}

void LiveLines::before(const reader::Record& /*record*/) { listener_.clear(); }

void LiveLines::after(const reader::Record& record) {
  last_ns_ = record.time_ns;
  if (!output_.good() || !filter_.wants_thread(*definitions_, record.thread)) return;
  if (!events_.admits(record)) return;
  if (format_ == OutputFormat::kJson) {
    printer_->print_json(record, listener_.effect(), false);
  } else {
    printer_->print_text(record, listener_.effect());
  }
}

void LiveLines::end(const reader::Trace& trace, reader::Replay& /*replay*/,
                    int64_t /*from_ns*/, int64_t /*until_ns*/,
                    const std::vector<reader::LiveThread>& /*threads*/) {
  printer_->finish();
  if (events_.is_set() && (!problem_.has_value() || !problem_->empty())) {
    problem_ = reader::unmet_condition(events_.texts(),
                                       reader::field_types(trace.definitions()));
  }
  // A failure stays in output_: good() tells it.
  static_cast<void>(output_.finish());
}

void LiveLines::finish() {
  if (!events_.is_set() || !output_.good()) return;
  if (format_ == OutputFormat::kJson) {
    reader::JsonWriter json(output_.writer());
    reader::write_left_out_line(events_, last_ns_, json);
    json.finish();
    static_cast<void>(output_.finish());
  } else {
    reader::print_message(reader::left_out_events_text(events_));
  }
  if (!problem_.value_or("").empty()) reader::print_warning(reader::escaped(*problem_));
}

namespace {

constexpr uint64_t kShowEveryNs = 500'000'000;
constexpr int64_t kWindowNs = 5'000'000'000;

// Returns a name that no file has yet.
std::string snapshot_name() {
  for (int i = 1;; ++i) {
    std::string name = absl::StrCat("arctrace.live.", i);
    if (access(name.c_str(), F_OK) != 0) return name;
  }
}

std::string take_live_snapshot(const recorder::Buffer& buffer) {
  recording::SnapshotFileOptions file;
  file.output.path = snapshot_name();
  file.command_line = {"arctrace", "live"};
  file.is_live = true;
  recording::Events nobody;
  const auto written = recording::write_buffer_to_file(buffer, file, nobody);
  return written.ok()
             ? absl::StrCat("snapshot: ", file.output.path)
             : absl::StrCat("no snapshot: ", std::string(written.status().message()));
}

// Takes what the row's thread does from /proc if the session does not tell it.
void poll_thread(reader::ThreadWatch& watch, size_t row, reader::LiveModel& model) {
  if (row >= model.threads().size() || model.is_paused()) return;
  const reader::LiveThreadRow& thread = model.threads()[row];
  if (thread.cpu.source == reader::CpuSource::kKernel) return;
  model.set_cpu(row, watch.poll(thread.pid, thread.tid, thread.pid_namespace,
                                static_cast<int64_t>(read_monotonic_ns())));
}

}  // namespace

void DeferredOutput::redirect() {
  input_ = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  error_ = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  deferred_ = ::open(reader::temporary_directory().c_str(),
                     O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(deferred_ >= 0 ? deferred_ : nothing, STDERR_FILENO);
  ::close(nothing);
}

void DeferredOutput::restore() {
  if (error_ < 0) return;
  ::dup2(input_, STDIN_FILENO);
  ::dup2(error_, STDERR_FILENO);
  ::close(std::exchange(input_, -1));
  ::close(std::exchange(error_, -1));
}

DeferredOutput::~DeferredOutput() {
  restore();
  if (deferred_ < 0) return;
  std::array<char, 4096> piece;
  off_t at = 0;
  for (ssize_t got = 0; (got = ::pread(deferred_, piece.data(), piece.size(), at)) > 0;) {
    const ssize_t written =
        ::write(STDERR_FILENO, piece.data(), static_cast<size_t>(got));
    if (written <= 0) break;
    at += written;
  }
  ::close(deferred_);
}

absl::StatusOr<std::unique_ptr<terminal::Screen>> open_live_screen() {
  absl::StatusOr<std::unique_ptr<terminal::Screen>> screen = terminal::Screen::open();
  if (screen.ok()) return screen;
  return absl::FailedPreconditionError(
      absl::StrCat("live: ", std::string(screen.status().message()),
                   "; --plain prints lines instead"));
}

absl::StatusOr<int> show_session(terminal::Screen& screen, const std::string& title,
                                 bool full_names, WatchedSession& session,
                                 recording::Recording* own,
                                 const recording::SignalScope& signals,
                                 std::optional<recording::Recording::End>& ended) {
  absl::StatusOr<reader::SessionCopy> copy = session.make_copy();
  if (!copy.ok()) return copy.status();
  const std::unique_ptr<recorder::ActingWithRights> rights =
      act_as_owner(session.buffer().path());
  reader::Symbolizer symbolizer;
  reader::LiveReader reader(*std::move(copy), symbolizer, own != nullptr);
  reader::LiveModel model(kWindowNs, full_names);
  terminal::LiveScreen shown(screen, model, title,
                             [&] { return take_live_snapshot(session.buffer()); });
  reader::ThreadWatch watch(read_pid_namespace(), kFirstPidNamespace, kWindowNs);
  uint64_t next_ns = 0;
  for (bool is_over = false;;) {
    const uint64_t now_ns = read_monotonic_ns();
    if (!is_over && now_ns >= next_ns) {
      if (own != nullptr) {
        own->poll();
        ended = own->wait_for_end(signals, 0);
        is_over = ended.has_value();
        if (is_over) own->close();
        if (is_over && ended->is_interrupted) return kStatusInterrupted;
      } else {
        is_over = session.is_over();
        if (!is_over) session.follow_files(reader.copy());
      }
      if (absl::Status s = reader.tick(model, is_over); !s.ok()) return s;
      if (is_over) shown.set_over();
      model.set_buffer(reader.copy().buffer(), reader.copy().session().block_count);
      next_ns = read_monotonic_ns() + kShowEveryNs;
    }
    if (!is_over) poll_thread(watch, shown.thread(), model);
    shown.draw();
    const uint64_t left_ns = next_ns - std::min(next_ns, read_monotonic_ns());
    const int key = screen.key(static_cast<int>(left_ns / 1'000'000) + 1);
    if (!shown.handle(key)) return 0;
    const bool passes_signals_on =
        own != nullptr && own->has_child() && !ended.has_value();
    if (!passes_signals_on && signals.take_end() != 0) return kStatusInterrupted;
  }
}

namespace {

using recording::Recording;
using recording::RecordOptions;
using recording::SignalScope;

bool is_command(const LiveOptions& options) { return !options.record.command.empty(); }

// Returns the title of the screen: what is recorded.
std::string title_of(const RecordOptions& record) {
  return record.command.empty()
             ? absl::StrCat("process ", absl::StrJoin(record.pids, ", "))
             : reader::escaped(absl::StrJoin(record.command, " "));
}

// Starts a recording that nobody collects. Error: the message to print; `exit_status` is
// the status with which this process is to exit, if that is not 2.
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
  reader::print_error(std::string(why.message()));
  return exit_status;
}

// Shows the screen until the recording has ended and the user leaves. What the command
// writes appears then. Returns 0 if `ended` says how the command ended, else the exit
// status.
absl::StatusOr<int> show(const LiveOptions& options, const SignalScope& signals,
                         std::optional<Recording::End>& ended) {
  PrintedEvents events;
  DeferredOutput output;
  absl::StatusOr<std::unique_ptr<terminal::Screen>> screen = open_live_screen();
  if (!screen.ok()) return screen.status();
  output.redirect();
  int exit_status = 0;
  absl::StatusOr<std::unique_ptr<Recording>> session =
      start(options.record, signals, events, exit_status);
  output.restore();
  events.hold();
  if (!session.ok()) {
    screen->reset();
    return not_started(session.status(), exit_status);
  }
  absl::StatusOr<WatchedSession> watched =
      WatchedSession::open((*session)->buffer().path());
  if (!watched.ok()) return watched.status();
  absl::StatusOr<int> left =
      show_session(**screen, title_of(options.record), options.full_names, *watched,
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

// Prints lines until the recording ends. Returns as show() does.
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
  std::signal(SIGPIPE, SIG_IGN);  // a command goes on without a reader of its output
  reader::Symbolizer symbolizer;
  reader::LiveReader reader(*std::move(copy), symbolizer, true);
  LiveLines lines(options, output);
  while (!ended.has_value()) {
    ended = (*session)->wait_for_end(signals, kLiveTickNs);
    (*session)->poll();
    if (ended.has_value()) (*session)->close();
    if (!output.good()) {
      // A command goes on, because its end gives the exit status. Joined processes do not
      // need us any more.
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
