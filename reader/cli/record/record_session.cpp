#include "reader/cli/record/record_session.hpp"

#include <absl/strings/str_cat.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "reader/cli/record/printed_events.hpp"
#include "reader/cli/record/recording_end.hpp"
#include "reader/cli/record/recording_warnings.hpp"
#include "reader/render/output.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/buffer/clock.hpp"
#include "src/protocol/moments.hpp"
#include "src/recorder/buffer/session_directory.hpp"
#include "src/recorder/kernel/kernel_requests.hpp"
#include "src/recording/child_process.hpp"
#include "src/recording/patching/patch_check.hpp"
#include "src/recording/patterns/session_functions.hpp"
#include "src/recording/patterns/unmatched_patterns.hpp"
#include "src/recording/recording.hpp"
#include "src/recording/session_variables.hpp"

namespace arctrace::cli {
namespace {

using recording::Recording;

// Warns if the command itself cannot be traced; its children may be. Returns whether it
// warned.
bool warn_if_untraceable(const std::string& command) {
  const uint32_t why = recording::why_untraceable(command);
  if (why != 0) warn_untraced(command, why);
  return why != 0;
}

// Finds the matches by the functions of the session's programs: the control page's word
// is also about the patterns of other commands that record into the session.
void warn_of_unmatched_in_session(const recording::RecordOptions& options) {
  const absl::StatusOr<std::string> path = session_file(options.session);
  if (!path.ok() || options.filter.is_empty()) return;
  const absl::StatusOr<recording::SessionFunctions> session =
      recording::functions_of_session(*path);
  // There are none if a collector has taken the definitions out of the buffer.
  if (!session.ok() || session->functions.empty()) return;
  warn_of_unmatched(options.filter, recording::matched_patterns(options.filter, *session),
                    options.command.front());
}

absl::StatusOr<int> run_in_session(const recording::RecordOptions& options) {
  PrintedEvents events;
  const auto variables = recording::session_environment(options, events);
  if (!variables.ok()) return variables.status();
  int status = 0;
  {
    const recording::SignalScope signals;
    if (options.wait_for_all) recording::adopt_orphans();
    const absl::StatusOr<Buffer> buffer = open_session(options.session);
    if (!buffer.ok()) return buffer.status();
    const BufferView& view = buffer->view();
    const bool is_on = IpcAtomics::load_relaxed(view.control().gate) != 0;
    if (!is_on) {
      reader::print_warning(absl::StrCat("recording is off: arctrace start ",
                                         options.session, " switches it on"));
    }
    ask_for_kernel_records_of_children(view);
    const uint64_t start_ticks = read_ticks(view.geometry().clock);
    absl::StatusOr<recording::ChildProcess> child =
        recording::ChildProcess::start(options.command, *variables, false, signals);
    if (!child.ok()) return child.status();
    if (is_on) {
      const ExecMoment exec{static_cast<uint32_t>(child->pid()),
                            read_ticks(view.geometry().clock) - start_ticks};
      note_moment(execs(view), start_ticks, exec.pack());
    }
    warn_if_untraceable(options.command.front());
    const auto no_snapshot = [] {
      reader::print_message("SIGUSR2: arctrace snapshot takes a snapshot of a session");
    };
    status = child->wait(signals, no_snapshot);
    if (status == -1) return 128 + SIGINT;
    warn_of_unmatched_in_session(options);
    if (options.wait_for_all) recording::wait_for_descendants(signals, no_snapshot);
  }
  return recording::exit_like(status);
}

// Does what record_command() does, but for the exit. Sets `status` to the wait status of
// the command. Returns what this process is to return without regard to that, or 0.
absl::StatusOr<int> record_in_own_buffer(recording::RecordOptions options,
                                         const recording::SignalScope& signals,
                                         int& status) {
  PrintedEvents events;
  options.flight.recorder = recording::recorder_facts();
  const absl::StatusOr<std::unique_ptr<Recording>> made =
      Recording::create(options, Recording::Collecting::kIntoFile, events);
  if (!made.ok()) return made.status();
  Recording& recording = **made;
  if (const int signal = signals.take_end(); signal != 0) {
    status = signal;  // as if it had ended the command, which has not begun
    return 0;
  }
  if (absl::Status started = recording.start(options.output.path == "-", signals);
      !started.ok()) {
    reader::print_message(std::string(started.message()));
    return recording::exit_status_of(started);
  }
  const bool has_warned = warn_if_untraceable(options.command.front());
  const auto print = [&] {
    print_end(recording.summary(), options, recording.buffer().view(), has_warned);
  };
  status = recording.wait_for_command(signals, print);
  if (status == -1) {
    reader::print_message("interrupted: recording ends, the command continues");
    status = SIGINT;
  }
  if (!recording.is_finished()) {
    recording.finish(signals);
    print();
  }
  return recording::is_cut_off(recording.summary()) || !recording.is_published() ? 2 : 0;
}

}  // namespace

absl::StatusOr<int> record_command(const recording::RecordOptions& options) {
  if (options.command.empty()) {
    return absl::InvalidArgumentError(
        "record: no command given; try arctrace record --help");
  }
  const std::vector<std::string> problems =
      recording::patch_problems(options.filter, options.command.front());
  for (const std::string& line : problems) reader::print_message("record: " + line);
  if (!problems.empty()) return 2;
  if (!options.session.empty()) return run_in_session(options);
  int status = 0;
  {
    // Until the buffer is removed, which ending by a signal would leave behind.
    const recording::SignalScope signals;
    absl::StatusOr<int> recorded = record_in_own_buffer(options, signals, status);
    if (!recorded.ok() || *recorded != 0) return recorded;
  }
  return recording::exit_like(status);
}

}  // namespace arctrace::cli
