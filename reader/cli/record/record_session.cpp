// Runs a command under a recording session, or records processes that run already.
#include "reader/cli/record/record_session.hpp"

#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "reader/cli/record/printed_events.hpp"
#include "reader/render/output.hpp"
#include "reader/render/session_text.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/buffer/clock.hpp"
#include "src/protocol/control_events.hpp"
#include "src/recorder/buffer/session_directory.hpp"
#include "src/recorder/kernel/kernel_requests.hpp"
#include "src/recording/child_process.hpp"
#include "src/recording/join_processes.hpp"
#include "src/recording/patching/patch_check.hpp"
#include "src/recording/patterns/program_functions.hpp"
#include "src/recording/patterns/unmatched.hpp"
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

// Warns of patterns that no function of the session's programs matches. The control
// page's word does not tell, because it also has the bits of other commands' patterns.
void warn_of_unmatched_in_session(const recording::RecordOptions& options) {
  const absl::StatusOr<std::string> path = recorder::session_file(options.session);
  if (!path.ok() || options.filter.is_empty()) return;
  const absl::StatusOr<recording::SessionFunctions> session =
      recording::functions_of_session(*path);
  // The buffer has no functions if a collector has taken the definitions out of it.
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
    const absl::StatusOr<recorder::Buffer> buffer =
        recorder::open_session(options.session);
    if (!buffer.ok()) return buffer.status();
    const BufferView& view = buffer->view();
    const bool is_on = IpcAtomics::load_relaxed(view.control().gate) != 0;
    if (!is_on) {
      reader::print_warning(absl::StrCat("recording is off: arctrace start ",
                                         options.session, " switches it on"));
    }
    recorder::ask_for_kernel_records_of_children(view);
    const uint64_t start_ticks = read_ticks(view);
    absl::StatusOr<recording::ChildProcess> child =
        recording::ChildProcess::start(options.command, *variables, false, signals);
    if (!child.ok()) return child.status();
    if (is_on) {
      const ExecEvent exec{static_cast<uint32_t>(child->pid()),
                           read_ticks(view) - start_ticks};
      note_control_event(execs(view), start_ticks, exec.pack());
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

// With -v: what the command is recorded into.
void tell_buffer(const recorder::Buffer& buffer) {
  const Geometry& geometry = buffer.view().geometry();
  reader::print_detail(absl::StrCat("the buffer is ", buffer.path(), ": ",
                                    reader::bytes_text(geometry.total_size), ", ",
                                    geometry.block_count, " blocks of ",
                                    reader::bytes_text(geometry.block_size)));
  if (const absl::StatusOr<std::string> shim = recording::find_shim(); shim.ok()) {
    reader::print_detail(absl::StrCat("programs load ", *shim));
  }
}

// Does what record_command() does, but for the exit. Sets `status` to the wait status of
// the command. Returns 0, or what this process is to return whatever the command did.
absl::StatusOr<int> record_in_own_buffer(recording::RecordOptions options,
                                         const recording::SignalScope& signals,
                                         int& status) {
  PrintedEvents events;
  options.flight.recorder = recording::recorder_facts();
  const absl::StatusOr<std::unique_ptr<Recording>> made =
      Recording::create(options, Recording::Collecting::kIntoFile, events);
  if (!made.ok()) return made.status();
  Recording& recording = **made;
  tell_buffer(recording.buffer());
  if (const int signal = signals.take_end(); signal != 0) {
    status = signal;  // as if the signal had ended the command, which has not begun
    return 0;
  }
  if (absl::Status started = recording.start(options.output.path == "-", signals);
      !started.ok()) {
    reader::print_error(std::string(started.message()));
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

namespace {

// Warns at the start, because a recording that waits for a snapshot may take days.
void warn_of_unmet_conditions(const recording::CallFilterOptions& filter,
                              const std::string& program) {
  for (const std::string& line : recording::unmet_conditions(filter, program)) {
    reader::print_warning(line);
  }
}

}  // namespace

absl::StatusOr<int> record_command(const recording::RecordOptions& options) {
  if (options.command.empty()) {
    return absl::InvalidArgumentError(
        "record: no command given; try arctrace record --help");
  }
  const std::vector<std::string> problems =
      recording::patch_problems(options.filter, options.command.front());
  for (const std::string& line : problems) reader::print_error("record: " + line);
  if (!problems.empty()) return 2;
  warn_of_unmet_conditions(options.filter, options.command.front());
  if (!options.session.empty()) return run_in_session(options);
  int status = 0;
  {
    // The scope lasts until the buffer is removed, because an end by a signal would leave
    // the buffer behind.
    const recording::SignalScope signals;
    absl::StatusOr<int> recorded = record_in_own_buffer(options, signals, status);
    if (!recorded.ok() || *recorded != 0) return recorded;
  }
  return recording::exit_like(status);
}

namespace {

using recording::Recording;
using recording::RecordOptions;

void print_joined_end(const Recording& recording, const std::string& program) {
  const RecordOptions& options = recording.options();
  const recorder::CollectorSummary& summary = recording.summary();
  warn_of_unmatched(
      options.filter,
      IpcAtomics::load_relaxed(recording.buffer().view().control().patterns_matched),
      program, &summary);
  warn_of_unmatched_events(summary, options.record_filter);
  warn_of_untraced(summary);
  warn_of_identities(summary);
  if (!options.filter.patch.empty()) tell_patches(summary, options, false);
  if (summary.totals.records == 0 &&
      options.library_calls == recording::LibraryCalls::kProgram) {
    std::string hint = "the program itself called no library";
    if (recording.leaves_children()) {
      absl::StrAppend(&hint, ", and its children are not recorded");
    } else {
      absl::StrAppend(&hint,
                      "; --nest-libcall also records the calls that its libraries make");
      if (options.filter.patch.empty()) {
        absl::StrAppend(&hint, ", ", patch_advice(program));
      }
    }
    reader::print_message(hint);
  }
  if (summary.overwritten != 0) tell_kept(options.output.path, options.keep_ns);
  reader::print_message(recording_summary_line(summary, options.output.path));
}

absl::StatusOr<int> record(RecordOptions options) {
  const recording::SignalScope signals;
  PrintedEvents events;
  options.flight.recorder = recording::recorder_facts();
  const absl::StatusOr<std::unique_ptr<Recording>> made =
      Recording::create(options, Recording::Collecting::kIntoFile, events);
  if (!made.ok()) return made.status();
  Recording& recording = **made;
  if (absl::Status joined = recording.join(); !joined.ok()) {
    if (absl::IsAborted(joined)) return 2;  // each failure was printed
    return joined;
  }
  const std::string program = recording::program_of(recording.joined().front());
  warn_of_unmet_conditions(options.filter, program);
  recording.wait(signals);
  recording.finish(signals);
  print_joined_end(recording, program);
  const bool is_whole =
      recording.is_published() && recording.joined().size() == options.pids.size();
  return is_whole && !recording::is_cut_off(recording.summary()) ? 0 : 2;
}

}  // namespace

absl::StatusOr<int> record_joined(const RecordOptions& options) {
  if (!options.command.empty()) {
    return absl::InvalidArgumentError("record: either --pid or a command");
  }
  if (!options.session.empty() || options.wait_for_all) {
    return absl::InvalidArgumentError(
        "record: --session and --wait do not apply with --pid");
  }
  return record(options);
}

}  // namespace arctrace::cli
