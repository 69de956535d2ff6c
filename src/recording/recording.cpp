// The steps of a recording: makes, starts, waits, and finishes.
#include "src/recording/recording.hpp"

#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

#include "reader/render/session_text.hpp"
#include "reader/render/shell_text.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/buffer/clock.hpp"
#include "src/protocol/control_events.hpp"
#include "src/recorder/attach/process_status.hpp"
#include "src/recorder/buffer/map_memory.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/recorder/buffer/session_directory.hpp"
#include "src/recorder/snapshot/flight_recorder.hpp"
#include "src/recording/events.hpp"
#include "src/recording/file_symbols.hpp"
#include "src/recording/hook_costs.hpp"
#include "src/recording/join_processes.hpp"
#include "src/recording/output_file.hpp"
#include "src/recording/session_users.hpp"
#include "src/recording/session_variables.hpp"

namespace arctrace::recording {
namespace {

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

absl::StatusOr<recorder::ResumedSession> earlier_collector(
    const AdoptOptions& options, const recorder::Buffer& buffer) {
  recorder::ResumedSession resumed{true};
  if (options.definitions.empty()) return resumed;
  auto definitions =
      recorder::read_chunks_untrusted(options.definitions, buffer.header(), false);
  if (!definitions.ok()) return definitions.status();
  resumed.definitions = *std::move(definitions);
  return resumed;
}

// The programs for the kernel's records, if the session was made for these. Without the
// rights for that the session is collected without them.
KernelPart kernel_part_of(const recorder::Buffer& buffer, Events& events) {
  const BufferView& view = buffer.view();
  if (buffer.map() < 0 || view.geometry().cpu_count == 0) return {};
  std::string why = recorder::kernel_writer_obstacle();
  if (why.empty()) {
    const uint32_t wanted = IpcAtomics::load_relaxed(view.control().kernel_wanted) &
                            ARCTRACE_KERNEL_EVENTS_ALL;
    absl::StatusOr<KernelPart> part = load_kernel_part(
        buffer, wanted, recorder::KernelRequests::Processes::kThatJoin, events);
    if (part.ok()) return *std::move(part);
    why = std::string(part.status().message());
  }
  events.warn(absl::StrCat("collecting without the kernel's records: ", why));
  return {};
}

}  // namespace

recorder::RecorderFacts recorder_facts() { return {own_command_line(), hook_costs()}; }

bool is_cut_off(const recorder::CollectorSummary& summary) {
  return summary.file_error != 0 && !recorder::is_full_disk(summary.file_error);
}

Recording::Recording(RecordingBuffer buffer, RecordOptions options, bool is_adopted,
                     Events& events)
    : events_(events),
      options_(std::move(options)),
      buffer_(std::move(buffer)),
      lock_(buffer_.buffer.view()),
      is_adopted_(is_adopted) {
  const BufferView& view = buffer_.buffer.view();
  if (!view.geometry().has_clock_word()) return;
  constexpr uint32_t kLeastNs = 1000;  // the header of a session may say anything
  clock_ = std::make_unique<recorder::ClockKeeper>(
      view, std::max(buffer_.buffer.header().resolution_ns, kLeastNs),
      options_.clock_cpu);
}

// The next process that becomes the collector, when the lock is free, loads programs of
// its own.
Recording::~Recording() { buffer_.kernel.detach(); }

absl::StatusOr<std::unique_ptr<Recording>> Recording::create(RecordOptions options,
                                                             Collecting collecting,
                                                             Events& events) {
  if (const auto shim = find_shim(); !shim.ok()) return shim.status();
  if (collecting == Collecting::kNot) options.buffer.mode = ARCTRACE_MODE_OVERWRITE;
  const absl::StatusOr<int64_t> owner = recorder::buffer_owner_for(options.pids);
  if (!owner.ok()) return owner.status();
  options.buffer.owner = *owner;
  absl::StatusOr<RecordingBuffer> buffer =
      make_recording_buffer(options.buffer, options.kernel, events);
  if (!buffer.ok()) return buffer.status();
  std::unique_ptr<Recording> recording(
      new Recording(*std::move(buffer), std::move(options), false, events));
  if (collecting == Collecting::kIntoFile) {
    if (absl::Status made = recording->make_recorder({}); !made.ok()) return made;
  }
  const std::string& warning = recording->buffer().warning();
  if (!warning.empty()) events.warn(warning);
  return recording;
}

absl::StatusOr<std::unique_ptr<Recording>> Recording::adopt(RecordOptions options,
                                                            const AdoptOptions& how,
                                                            Events& events) {
  absl::StatusOr<recorder::Buffer> buffer = recorder::open_session(options.session);
  if (!buffer.ok()) return buffer.status();
  std::unique_ptr<Recording> recording(new Recording(RecordingBuffer{*std::move(buffer)},
                                                     std::move(options), true, events));
  recorder::Buffer& its = recording->buffer_.buffer;
  if (!recording->lock_.is_held()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "session ", recording->options_.session, " already has a collector, pid ",
        IpcAtomics::load_relaxed(its.view().control().collector_pid)));
  }
  absl::StatusOr<recorder::ResumedSession> resumed = earlier_collector(how, its);
  if (!resumed.ok()) return resumed.status();
  if (absl::Status pinned = its.pin(how.pin); !pinned.ok()) return pinned;
  if (!its.warning().empty()) events.warn(its.warning());
  recorder::reclaim_blocks(its);
  recording->buffer_.kernel = kernel_part_of(its, events);
  // Definitions that were written so far may be in the file of another collector:
  // programs repeat them.
  recorder::demand_definitions(its.view());
  if (absl::Status made = recording->make_recorder(*std::move(resumed)); !made.ok()) {
    return made;
  }
  return recording;
}

absl::Status Recording::make_recorder(recorder::ResumedSession resumed) {
  recorder::Buffer& buffer = buffer_.buffer;
  const OutputFile& output = options_.output;
  recorder::FlightOptions flight = options_.flight;
  absl::Status can_run = recorder::check_collector_thread(flight.runs);
  if (!can_run.ok()) return can_run;
  if (options_.clock_cpu.has_value()) {
    can_run =
        recorder::check_collector_thread({.cpu = options_.clock_cpu}, "--clock-cpu");
    if (!can_run.ok()) return can_run;
  }
  absl::StatusOr<recorder::TraceFile> file = create_output(output);
  if (!file.ok()) return file.status();
  const uint32_t mode = buffer.view().geometry().mode;
  // Only a regular file has a temporary name at first.
  if (cuts_files(mode, flight.snapshots_kept) && file->is_published()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--size-limit needs a regular file, not ", output.path));
  }
  announce_special(*file, events_);
  flight.polled = buffer_.perf.get();
  // What was measured is the cost of calls that read the clock.
  if (buffer.view().geometry().has_clock_word()) flight.recorder.hook_costs.clear();
  if (buffer.map() >= 0) {
    const auto cost =
        recorder::measure_map_cost(buffer.map(), buffer.view().geometry().total_size);
    if (cost.has_value()) flight.recorder.hook_costs.push_back(*cost);
  }
  if (mode == ARCTRACE_MODE_OVERWRITE) {
    flight.output = output.path;
    flight.print = [this](const std::string& line) { events_.tell(line); };
    recorder_ = std::make_unique<recorder::FlightRecorder>(buffer, *std::move(file),
                                                           std::move(flight));
  } else {
    recorder_ = std::make_unique<recorder::Collector>(
        buffer, *std::move(file), flight.recorder, resumed, flight.snapshots_kept,
        flight.polled, flight.runs);
  }
  return absl::OkStatus();
}

absl::Status Recording::open() {
  if (is_adopted_) return absl::OkStatus();
  const BufferView& view = buffer_.buffer.view();
  if (!options_.record_filter.empty()) {
    absl::Status filtered =
        recorder::set_record_filter(view, options_.record_filter.text());
    if (!filtered.ok()) return filtered;
  }
  recorder::set_gate(view, ARCTRACE_GATE_ALL & ~options_.off);
  return absl::OkStatus();
}

absl::Status Recording::publish() {
  if (recorder_ == nullptr) return absl::OkStatus();
  absl::Status published = recorder_->publish();
  is_published_ = published.ok();
  if (!is_published_ && !is_adopted_) events_.tell(std::string(published.message()));
  return published;
}

absl::Status Recording::start(bool output_to_error, const SignalScope& signals) {
  const absl::StatusOr<std::string> shim = find_shim();
  if (!shim.ok()) return shim.status();
  const auto variables = session_variables(*shim, buffer().path(), options_, events_);
  if (!variables.ok()) return variables.status();
  if (absl::Status opened = open(); !opened.ok()) return opened;
  if (options_.wait_for_all) adopt_orphans();
  const BufferView& view = buffer_.buffer.view();
  const uint64_t start_ticks = read_ticks(view);
  absl::StatusOr<ChildProcess> child =
      ChildProcess::start(options_.command, *variables, output_to_error, signals);
  const uint64_t started_ticks = read_ticks(view);
  if (!child.ok()) return child.status();
  child_ = *child;
  const auto pid = static_cast<uint32_t>(child_->pid());
  if (recorder_ != nullptr) {
    recorder_->command_started(pid, start_ticks, started_ticks);
  } else {
    const ExecEvent exec{pid, started_ticks - start_ticks};
    note_control_event(execs(view), start_ticks, exec.pack());
  }
  buffer_.end_tracing_children();
  (void)publish();  // is_published() returns the result
  return absl::OkStatus();
}

absl::Status Recording::join() {
  const std::vector<pid_t>& pids = options_.pids;
  if (!pids.empty()) {
    const absl::StatusOr<recorder::JoinRequest> request =
        join_request(options_, buffer(), events_);
    if (!request.ok()) return request.status();
    if (absl::Status opened = open(); !opened.ok()) return opened;
    if (!is_adopted_) {
      for (const pid_t pid : pids) threads_.emplace_back(pid, buffer().view());
    }
    joined_ = join_processes(pids, *request, buffer_.kernel.writer.get(), events_);
    if (joined_.pids.empty()) return absl::AbortedError("no process was joined");
    for (ProcessThreads& its : threads_) its.scan();
  }
  absl::Status published = publish();
  return is_adopted_ ? published : absl::OkStatus();
}

int Recording::wait_for_command(const SignalScope& signals,
                                const std::function<void()>& at_end) {
  const auto on_snapshot = [this] {
    if (!is_finished()) take_snapshot();
  };
  const auto end = [&] {
    finish(signals);
    at_end();
  };
  const int status =
      child_->wait(signals, on_snapshot, Deadline(options_.duration_ns, end));
  if (status == -1 || is_finished()) return status;
  recorder_->child_ended(static_cast<uint32_t>(child_->pid()), status);
  if (options_.wait_for_all) wait_for_descendants(signals, on_snapshot);
  return status;
}

bool Recording::is_over() {
  if (is_adopted_) {
    // A session is also destroyed by cutting off its file.
    return buffer().is_cut_off() || access(buffer().path().c_str(), F_OK) != 0;
  }
  for (ProcessThreads& its : threads_) its.scan();
  return have_ended(joined_.pids);
}

void Recording::wait(const SignalScope& signals) {
  const timespec poll{0, 100'000'000};
  const uint64_t begin_ns = read_monotonic_ns();
  const uint64_t duration_ns = options_.duration_ns;
  while (duration_ns == 0 || read_monotonic_ns() - begin_ns < duration_ns) {
    const int signal = sigtimedwait(&signals.handled(), nullptr, &poll);
    if (signal == SIGUSR2) {
      take_snapshot();
      continue;
    }
    if ((signal > 0 && signal != SIGCHLD) || is_over()) return;
  }
}

std::optional<Recording::End> Recording::wait_for_end(const SignalScope& signals,
                                                      uint64_t timeout_ns) {
  if (child_.has_value()) {
    const std::optional<int> status = child_->wait_for(signals, timeout_ns);
    if (!status.has_value()) return std::nullopt;
    return End{.wait_status = *status};
  }
  if (signals.take_end(timeout_ns) != 0) return End{.is_interrupted = true};
  if (have_ended(joined_.pids)) return End{};
  return std::nullopt;
}

void Recording::take_snapshot() {
  const absl::StatusOr<std::string> name = recorder_->snapshot();
  events_.tell(name.ok() ? "snapshot: " + *name : std::string(name.status().message()));
}

void Recording::poll() {
  if (is_open_ && recorder_ == nullptr && buffer_.perf != nullptr) {
    buffer_.perf->poll();
  }
}

void Recording::close() {
  if (!is_open_) return;
  is_open_ = false;
  if (recorder_ == nullptr && buffer_.perf != nullptr) buffer_.perf->finish();
  if (recorder_ == nullptr || buffer_.kernel.writer != nullptr) {
    recorder::close_gate(buffer_.buffer.view());
    buffer_.kernel.detach();
  }
}

const recorder::CollectorSummary& Recording::finish(const SignalScope& signals) {
  const BufferView& view = buffer_.buffer.view();
  const uint32_t gate = IpcAtomics::load_relaxed(view.control().gate);
  // The recorder knows no names to filter by.
  const bool is_filtered =
      options_.filter.excludes_functions() || !options_.record_filter.empty();
  for (ProcessThreads& its : threads_) {
    recorder_->threads_joined(its.finish(!is_filtered));
  }
  close();
  if (clock_ != nullptr) {
    // No record is written any more that would have the time of the last store.
    recorder::close_gate(view);
    recorder_->clock_word_moved(clock_->finish());
  }
  summary_ = recorder_->finish();
  if (is_adopted_) recorder::set_gate(view, gate);  // the session goes on
  store_symbols(*recorder_, options_.output, {options_.pids, options_.buffer.owner},
                signals, *summary_, events_);
  if (!is_adopted_) keep_unsaved();
  if (has_child()) count_living();
  return *summary_;
}

// If the disk had no space for all records, keeps the buffer, and tells how to get at
// them.
void Recording::keep_unsaved() {
  const uint64_t count = summary_->totals.unsaved + summary_->totals.unsaved_kernel;
  if (count == 0) return;
  recorder::Buffer& buffer = buffer_.buffer;
  buffer.keep_file();
  std::error_code error;
  // A file that is not a regular one can't be read again, but then all definitions are in
  // the buffer.
  const std::string& file = options_.output.path;
  const bool has_definitions = std::filesystem::is_regular_file(file, error);
  const std::string from = reader::shell_word(buffer.path());
  const std::string recover =
      has_definitions
          ? absl::StrCat("arctrace recover --merge=", reader::shell_word(file), " -o ",
                         reader::shell_file(file + ".whole"), " ")
          : "arctrace recover -o recovered.data ";
  events_.tell(absl::StrCat(reader::count_text(count, "record"),
                            " did not fit on the disk and ", count == 1 ? "is" : "are",
                            " in ", buffer.path(), ": make room, then run ", recover,
                            from, " && arctrace destroy ", from));
}

// Counts also those that have recorded nothing so far. Some may be about to end.
void Recording::count_living() {
  const std::string& path = buffer().path();
  if (summary_->living == 0 && count_session_users(path) == 0) return;
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  summary_->living = static_cast<uint32_t>(
      std::max(recorder::distinct_processes(buffer().view()), count_session_users(path)));
}

}  // namespace arctrace::recording
