#include "reader/cli/record/record_session.hpp"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "reader/cli/options/buffer_options.hpp"
#include "reader/cli/options/command_path.hpp"
#include "reader/cli/options/session_functions.hpp"
#include "reader/cli/record/arg_types.hpp"
#include "reader/cli/record/child_process.hpp"
#include "reader/cli/record/file_symbols.hpp"
#include "reader/cli/record/hook_costs.hpp"
#include "reader/cli/record/output_file.hpp"
#include "reader/cli/record/patch_check.hpp"
#include "reader/cli/record/patch_choice.hpp"
#include "reader/cli/record/recording_buffer.hpp"
#include "reader/cli/record/recording_warnings.hpp"
#include "reader/cli/record/room_check.hpp"
#include "reader/cli/record/session_users.hpp"
#include "reader/cli/record/session_variables.hpp"
#include "reader/cli/record/unmatched_events.hpp"
#include "reader/cli/record/unmatched_patterns.hpp"
#include "reader/render/losses.hpp"
#include "reader/render/output.hpp"
#include "reader/render/session_text.hpp"
#include "reader/symbols/elf_file.hpp"
#include "reader/trace/format_names.hpp"
#include "reader/trace/text_escape.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/buffer/clock.hpp"
#include "src/os/program_file.hpp"
#include "src/protocol/moments.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/recorder/buffer/session_directory.hpp"
#include "src/recorder/drain/collector.hpp"
#include "src/recorder/drain/collector_lock.hpp"
#include "src/recorder/kernel/kernel_requests.hpp"
#include "src/recorder/snapshot/flight_recorder.hpp"
#include "src/shim_protocol/environment.hpp"
#include "src/shim_protocol/options_encoder.hpp"

namespace arctrace::cli {
namespace {

namespace fs = std::filesystem;

// The command line of this process, with "arctrace" instead of its path.
std::vector<std::string> own_command_line() {
  std::vector<std::string> line;
  std::ifstream arguments("/proc/self/cmdline");
  for (std::string argument; std::getline(arguments, argument, '\0');) {
    line.push_back(argument);
  }
  if (!line.empty()) line.front() = "arctrace";
  return line;
}

// Warns if the command itself cannot be traced; its children may be. Returns whether it
// warned.
bool warn_if_untraceable(const std::string& command) {
  const uint32_t why = why_untraceable(command);
  if (why != 0) warn_untraced(command, why);
  return why != 0;
}

// Finds the matches by the functions of the session's programs: the control page's word
// is also about the patterns of other commands that record into the session.
void warn_of_unmatched_in_session(const RecordOptions& options) {
  const absl::StatusOr<std::string> path = session_file(options.session);
  if (!path.ok() || options.filter.is_empty()) return;
  const absl::StatusOr<SessionFunctions> session = functions_of_session(*path);
  // There are none if a collector has taken the definitions out of the buffer.
  if (!session.ok() || session->functions.empty()) return;
  warn_of_unmatched(options.filter, matched_patterns(options.filter, *session),
                    options.command.front());
}

absl::StatusOr<int> run_in_session(const RecordOptions& options) {
  const auto variables = session_environment(options);
  if (!variables.ok()) return variables.status();
  int status = 0;
  {
    const SignalScope signals;
    if (options.wait_for_all) adopt_orphans();
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
    absl::StatusOr<ChildProcess> child =
        ChildProcess::start(options.command, *variables, false, signals);
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
    if (options.wait_for_all) wait_for_descendants(signals, no_snapshot);
  }
  return exit_like(status);
}

uint64_t lost_records(const CollectorSummary& summary) {
  return std::accumulate(summary.lost.begin(), summary.lost.end(), uint64_t{0});
}

// Whether the command's functions have room for hooks.
bool has_rooms(const std::string& command) {
  const auto file = reader::ElfFile::open_untrusted(find_program(command));
  return file.ok() && file->has_section("__patchable_function_entries");
}

// What to do where no program's own function was recorded; empty where it is not missed:
// where the options exclude functions, or ask for other records and got some. Those that
// were lost may have been of such functions.
std::string own_functions_hint(const CollectorSummary& summary,
                               const RecordOptions& options) {
  if (summary.totals.has_own || options.filter.excludes_functions() ||
      !options.record_filter.empty() || (options.off & ARCTRACE_GATE_FUNCTIONS) != 0 ||
      lost_records(summary) != 0) {
    return "";
  }
  std::string what = "only library calls were recorded";
  if (summary.totals.records == 0) what = "no function was recorded";
  if (options.library_calls == LibraryCalls::kNone) {
    // With -P, what was recorded is that the program waited for it.
    const bool patches = !options.filter.patch.empty();
    if ((summary.totals.records != 0 && !patches) ||
        options.kernel.use != KernelRecording::kNo) {
      return "";
    }
    what = "no function was recorded (--no-libcall)";
  }
  if (!options.filter.patch.empty()) {
    const std::set<uint32_t>& refusals = summary.totals.patches.refusals();
    // A refusal says more than that some are small, and comes after it in the set.
    if (!refusals.empty() && *refusals.rbegin() == ARCTRACE_PATCH_SMALL) {
      return absl::StrCat(what, "; the functions that could be patched for -P have ",
                          kSmallFunctionsText);
    }
    if (!refusals.empty()) {
      return absl::StrCat(what, "; nothing was patched for -P: ",
                          reader::patch_refusal_text(*refusals.rbegin()));
    }
    return absl::StrCat(what,
                        "; no function could be patched for -P: arctrace functions ",
                        reader::escaped(options.command.front()),
                        " may say why, or the manual of functions that can be patched");
  }
  if (has_rooms(options.command.front())) {
    return absl::StrCat(what, "; functions of ", reader::escaped(options.command.front()),
                        " have room for hooks (-fpatchable-function-entry), but less "
                        "than a hook needs, or neither unwind tables nor symbols that "
                        "say where they begin");
  }
  return absl::StrCat(what,
                      "; to record a program's own functions, "
#if defined(__x86_64__)
                      "record it with -P ., or build it with -finstrument-functions, "
                      "-fpatchable-function-entry=5, -pg or "
                      "-pg -mfentry"
#else
                      "build it with -finstrument-functions or "
                      "-fpatchable-function-entry=1"
#endif
  );
}

// Where only some objects of the command lack what says where their functions begin, the
// others are recorded.
void tell_unused_rooms(const CollectorSummary& summary, const RecordOptions& options) {
  if (!summary.totals.has_own) return;
  const std::string path = find_program(options.command.front());
  const Rooms rooms = count_rooms_untrusted(path);
  if (rooms.without_begin == 0) return;
  reader::print_message(absl::StrCat(
      rooms.without_begin, " of the ", rooms.all, " functions of ",
      reader::escaped(options.command.front()),
      " that have room for hooks (-fpatchable-function-entry) are not recorded: neither "
      "unwind tables nor symbols say where they begin; build all of it with "
      "-fasynchronous-unwind-tables"));
}

void tell_switched_off(const CollectorSummary& summary) {
  const size_t count = summary.totals.patches.switched_off().size();
  if (count == 0) return;
  reader::print_message(absl::StrCat(
      reader::count_text(count, "function"), count == 1 ? " was" : " were",
      " switched off, because ", count == 1 ? "its" : "their",
      " calls filled the buffer: arctrace info -v names ", count == 1 ? "it" : "them",
      "; those that -P names without wildcards stay on"));
}

void tell_library_refusals(const CollectorSummary& summary) {
  const std::set<uint32_t>& refusals = summary.totals.patches.library_refusals();
  if (refusals.empty()) return;
  reader::print_message(absl::StrCat("nothing of some library was patched for -P: ",
                                     reader::patch_refusal_text(*refusals.begin()),
                                     "; arctrace info says of which"));
}

// Where other functions of the program were recorded: without them the hint about own
// functions says the same. With -Z it is what was asked for.
void tell_small(const CollectorSummary& summary, const RecordOptions& options) {
  if (!summary.totals.has_own || options.filter.size.has_value() ||
      !summary.totals.patches.refusals().contains(ARCTRACE_PATCH_SMALL)) {
    return;
  }
  reader::print_message(absl::StrCat("functions of fewer than ", kPatchedSizeMin,
                                     " bytes without calls and loops were not patched: "
                                     "-Z 1 takes them, too"));
}

void tell_snapshots(const CollectorSummary& summary, const RecordOptions& options) {
  if (options.filter.snapshot_when.empty()) return;
  std::string line = absl::StrCat(reader::count_text(summary.asked_snapshots, "snapshot"),
                                  " for --snapshot-when");
  if (summary.refused_snapshots != 0) {
    absl::StrAppend(&line, "; ", reader::count_text(summary.refused_snapshots, "call"),
                    " that would have had one came less than a second after another");
  }
  reader::print_message(line);
}

// Prints what is to be said at the end. `has_warned`: there was a warning that the
// command cannot be traced.
void print_end(const CollectorSummary& summary, const RecordOptions& options,
               const BufferView& buffer, bool has_warned) {
  has_warned = warn_of_missing_room(buffer) || has_warned;
  if (summary.processes == 0) {
    if (!has_warned) reader::print_warning("no process joined the session");
  } else {
    warn_of_unmatched(options.filter,
                      IpcAtomics::load_relaxed(buffer.control().patterns_matched),
                      options.command.front());
    warn_of_unmatched_events(summary, options.record_filter);
  }
  warn_of_untraced(summary);
  if (summary.living != 0 && !options.wait_for_all && options.duration_ns == 0) {
    reader::print_warning(absl::StrCat(
        reader::count_text(summary.living, "process", "processes"),
        summary.living == 1 ? " of the command still runs, and is recorded no longer"
                            : " of the command still run, and are recorded no longer",
        ": record --wait waits for that"));
  }
  warn_of_identities(summary);
  if (summary.processes != 0 && !has_warned) {
    if (const std::string hint = own_functions_hint(summary, options); !hint.empty()) {
      reader::print_message(hint);
    }
  }
  tell_unused_rooms(summary, options);
  tell_patches(summary, options);
  tell_snapshots(summary, options);
  reader::print_message(recording_summary_line(summary, options.output.path));
}

}  // namespace

RecorderFacts recorder_facts() { return {own_command_line(), hook_costs()}; }

absl::StatusOr<std::unique_ptr<Recorder>> make_recorder(Buffer& buffer,
                                                        FlightOptions flight,
                                                        const OutputFile& output,
                                                        ResumedSession resumed) {
  absl::StatusOr<TraceFile> file = create_output(output);
  if (!file.ok()) return file.status();
  const uint32_t mode = buffer.view().geometry().mode;
  // Only a regular file has a temporary name at first.
  if (cuts_files(mode, flight.snapshots_kept) && file->is_published()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--size-limit needs a regular file, not ", output.path));
  }
  announce_special(*file);
  if (mode == ARCTRACE_MODE_OVERWRITE) {
    flight.output = output.path;
    flight.print = [](const std::string& line) { reader::print_message(line); };
    return std::make_unique<FlightRecorder>(buffer, *std::move(file), std::move(flight));
  }
  return std::make_unique<Collector>(buffer, *std::move(file), flight.recorder, resumed,
                                     flight.snapshots_kept, flight.polled);
}

void keep_unsaved(Buffer& buffer, const CollectorSummary& summary,
                  const std::string& file) {
  const uint64_t count = summary.totals.unsaved + summary.totals.unsaved_kernel;
  if (count == 0) return;
  buffer.keep_file();
  std::error_code error;
  // A file that is not a regular one can't be read again, but then all definitions are in
  // the buffer.
  const bool has_definitions = fs::is_regular_file(file, error);
  reader::print_message(
      absl::StrCat(reader::count_text(count, "record"), " did not fit on the disk and ",
                   count == 1 ? "is" : "are", " in ", buffer.path(),
                   ": make room, then run arctrace recover ",
                   has_definitions ? absl::StrCat("--merge=", file, " ") : "",
                   buffer.path(), ", and arctrace destroy ", buffer.path()));
}

bool is_cut_off(const CollectorSummary& summary) {
  return summary.file_error != 0 && !is_full_disk(summary.file_error);
}

void tell_patches(const CollectorSummary& summary, const RecordOptions& options) {
  tell_switched_off(summary);
  tell_library_refusals(summary);
  tell_small(summary, options);
}

void wait_for_end(const SignalScope& signals, uint64_t duration_ns, Recorder& recorder,
                  const std::function<bool()>& is_over) {
  const timespec poll{0, 100'000'000};
  const uint64_t begin_ns = read_monotonic_ns();
  while (duration_ns == 0 || read_monotonic_ns() - begin_ns < duration_ns) {
    const int signal = sigtimedwait(&signals.handled(), nullptr, &poll);
    if (signal == SIGUSR2) {
      take_snapshot(recorder);
      continue;
    }
    if ((signal > 0 && signal != SIGCHLD) || is_over()) return;
  }
}

void take_snapshot(Recorder& recorder) {
  const absl::StatusOr<std::string> name = recorder.snapshot();
  reader::print_message(name.ok() ? "snapshot: " + *name
                                  : std::string(name.status().message()));
}

std::string recording_summary_line(const CollectorSummary& summary,
                                   const std::string& file) {
  const uint64_t removed = summary.removed.records + summary.removed.kernel;
  const uint64_t lost = lost_records(summary) + removed;
  std::string line = absl::StrCat(
      reader::count_text(summary.totals.records - summary.removed.records, "record"),
      ", ", reader::grouped_text(lost), " lost");
  if (lost != 0) {
    std::vector<uint64_t> causes = summary.lost;
    causes.push_back(removed);
    absl::StrAppend(&line, " (", reader::losses_text(causes));
    if (summary.removed.files != 0) {
      absl::StrAppend(&line, " with ", reader::count_text(summary.removed.files, "file"));
    }
    line += ')';
  }
  if (summary.overwritten != 0) {
    absl::StrAppend(&line, ", ", reader::grouped_text(summary.overwritten),
                    " overwritten");
  }
  if (summary.filtered_out != 0) {
    absl::StrAppend(&line, ", ", reader::grouped_text(summary.filtered_out),
                    " filtered out");
  }
  absl::StrAppend(&line, ", ",
                  reader::count_text(summary.processes, "process", "processes"), ", ",
                  reader::count_text(summary.threads, "thread"), ", ",
                  reader::bytes_text(summary.file_bytes), ", ", file);
  if (summary.earlier_files != 0) {
    absl::StrAppend(&line, " and ", reader::count_text(summary.earlier_files, "file"),
                    " before it");
  }
  if (const uint64_t begun = summary.totals.torn + summary.totals.unfinished; begun > 0) {
    absl::StrAppend(&line, " (", reader::count_text(begun, "record"),
                    begun == 1 ? " was" : " were", " in progress)");
  }
  if (summary.file_error != 0) {
    absl::StrAppend(&line, " (cut off: ", std::strerror(summary.file_error), ")");
  }
  return line;
}

namespace {

// Does what record_command() does, but for the exit. Sets `status` to the wait status of
// the command. Returns what this process is to return without regard to that, or 0.
absl::StatusOr<int> record_in_own_buffer(const RecordOptions& options,
                                         const SignalScope& signals, int& status) {
  const absl::StatusOr<std::string> shim = find_shim();
  if (!shim.ok()) return shim.status();
  FlightOptions flight = options.flight;
  flight.recorder = recorder_facts();
  absl::StatusOr<RecordingBuffer> recording =
      make_recording_buffer(options.buffer, options.kernel);
  if (!recording.ok()) return recording.status();
  Buffer& buffer = recording->buffer;
  const auto variables = session_variables(*shim, buffer.path(), options);
  if (!variables.ok()) return variables.status();

  bool is_published = true;  // the file has its name
  std::optional<CollectorSummary> summary;
  {
    const CollectorLock lock(buffer.view());
    flight.polled = recording->perf.get();
    const absl::StatusOr<std::unique_ptr<Recorder>> made =
        make_recorder(buffer, std::move(flight), options.output);
    if (!made.ok()) return made.status();
    Recorder* const recorder = made->get();
    if (!buffer.warning().empty()) reader::print_warning(buffer.warning());
    const auto on_snapshot = [&] {
      if (!summary) take_snapshot(*recorder);
    };
    bool has_warned = false;
    const auto end_recording = [&] {
      if (recording->kernel.writer != nullptr) {
        close_gate(buffer.view());
        recording->kernel.detach();
      }
      summary = recorder->finish();
      store_symbols(*recorder, options.output, signals, *summary);
      keep_unsaved(buffer, *summary, options.output.path);
      // Also those that have recorded nothing so far. Some may be about to end.
      if (summary->living != 0 || count_session_users(buffer.path()) != 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        summary->living = static_cast<uint32_t>(std::max(
            distinct_processes(buffer.view()), count_session_users(buffer.path())));
      }
      print_end(*summary, options, buffer.view(), has_warned);
    };
    if (const int signal = signals.take_end(); signal != 0) {
      status = signal;  // as if it had ended the command, which has not begun
      return 0;
    }
    if (!options.record_filter.empty()) {
      absl::Status filtered =
          set_record_filter(buffer.view(), options.record_filter.text());
      if (!filtered.ok()) return filtered;
    }
    set_gate(buffer.view(), ARCTRACE_GATE_ALL & ~options.off);
    if (options.wait_for_all) adopt_orphans();
    const uint32_t clock = buffer.view().geometry().clock;
    const uint64_t start_ticks = read_ticks(clock);
    absl::StatusOr<ChildProcess> child = ChildProcess::start(
        options.command, *variables, options.output.path == "-", signals);
    const uint64_t started_ticks = read_ticks(clock);
    if (!child.ok()) {
      reader::print_message(std::string(child.status().message()));
      return exit_status_of(child.status());
    }
    recorder->command_started(static_cast<uint32_t>(child->pid()), start_ticks,
                              started_ticks);
    has_warned = warn_if_untraceable(options.command.front());
    recording->end_tracing_children();
    if (absl::Status published = recorder->publish(); !published.ok()) {
      reader::print_message(std::string(published.message()));
      is_published = false;
    }
    status =
        child->wait(signals, on_snapshot, Deadline(options.duration_ns, end_recording));
    if (status == -1) {
      reader::print_message("interrupted: recording ends, the command continues");
      status = SIGINT;
    } else if (!summary) {
      recorder->child_ended(static_cast<uint32_t>(child->pid()), status);
      if (options.wait_for_all) wait_for_descendants(signals, on_snapshot);
    }
    if (!summary) end_recording();
  }
  return is_cut_off(*summary) || !is_published ? 2 : 0;
}

}  // namespace

absl::StatusOr<int> record_command(const RecordOptions& options) {
  if (options.command.empty()) {
    return absl::InvalidArgumentError(
        "record: no command given; try arctrace record --help");
  }
  const std::vector<std::string> problems =
      patch_problems(options.filter, options.command.front());
  for (const std::string& line : problems) reader::print_message("record: " + line);
  if (!problems.empty()) return 2;
  if (!options.session.empty()) return run_in_session(options);
  int status = 0;
  {
    // Until the buffer is removed, which ending by a signal would leave behind.
    const SignalScope signals;
    absl::StatusOr<int> recorded = record_in_own_buffer(options, signals, status);
    if (!recorded.ok() || *recorded != 0) return recorded;
  }
  return exit_like(status);
}

}  // namespace arctrace::cli
