#include "reader/cli/record/record_joined.hpp"

#include <absl/strings/str_cat.h>
#include <arctrace/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reader/cli/record/child_process.hpp"
#include "reader/cli/record/file_symbols.hpp"
#include "reader/cli/record/join_processes.hpp"
#include "reader/cli/record/record_session.hpp"
#include "reader/cli/record/recording_buffer.hpp"
#include "reader/cli/record/recording_warnings.hpp"
#include "reader/render/output.hpp"
#include "reader/trace/format_names.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/buffer/clock.hpp"
#include "src/recorder/attach/waiting_threads.hpp"
#include "src/recorder/buffer/recording_control.hpp"
#include "src/recorder/drain/collector_lock.hpp"
#include "src/recorder/snapshot/flight_recorder.hpp"

namespace arctrace::cli {
namespace {

// Says at the end what -P has not patched.
void tell_of_patches(const CollectorSummary& summary, const RecordOptions& options) {
  if (options.filter.patch.empty()) return;
  const std::set<uint32_t>& refusals = summary.totals.patches.refusals();
  // Refusals come after what says that some functions are small.
  if (!refusals.empty() && *refusals.rbegin() != ARCTRACE_PATCH_SMALL) {
    reader::print_message(absl::StrCat("nothing of some program was patched for -P: ",
                                       reader::patch_refusal_text(*refusals.rbegin())));
  }
  tell_patches(summary, options);
}

// The threads of a process that is joined.
class ProcessThreads {
 public:
  ProcessThreads(pid_t pid, uint32_t clock)
      : pid_(pid), clock_(clock), all_(read_joined_threads(pid, read_ticks(clock))) {}

  // Looks which of them wait, and when it is called again after a while once more: a
  // thread that was stopped to join the process may not wait again yet.
  void look() {
    constexpr auto kWhile = std::chrono::milliseconds(50);
    const auto moment = std::chrono::steady_clock::now();
    if (looks_ == kLooksMax || (looks_ != 0 && moment - first_look_ < kWhile)) return;
    if (looks_++ == 0) first_look_ = moment;
    std::vector<Waiting> now;
    const uint64_t ticks = read_ticks(clock_);
    for (const WaitingThread& thread : find_waiting_threads(pid_)) {
      const auto same =
          std::find_if(waiting_.begin(), waiting_.end(),
                       [&](const Waiting& before) { return before.thread == thread; });
      now.push_back({thread, same == waiting_.end() ? ticks : same->since_ticks});
    }
    waiting_ = std::move(now);
  }

  // The threads, with the functions in which those are that have waited since then.
  // `with_functions`: else without.
  JoinedThreads finish(bool with_functions) {
    if (!with_functions) return std::move(all_);
    std::vector<WaitingThread> waiting;
    waiting.reserve(waiting_.size());
    for (const Waiting& one : waiting_) waiting.push_back(one.thread);
    for (WaitingStack& stack : unwind_waiting_threads(pid_, waiting)) {
      const auto since =
          std::find_if(waiting_.begin(), waiting_.end(),
                       [&](const Waiting& one) { return one.thread.tid == stack.tid; });
      for (JoinedThreads::Thread& thread : all_.threads) {
        if (thread.task != stack.tid) continue;
        thread.waits_in = std::move(stack.functions);
        thread.is_whole = stack.is_whole;
        thread.waits_from_ticks = since->since_ticks;
      }
    }
    return std::move(all_);
  }

 private:
  static constexpr int kLooksMax = 2;
  struct Waiting {
    WaitingThread thread;
    uint64_t since_ticks;
  };
  const pid_t pid_;
  const uint32_t clock_;
  JoinedThreads all_;
  std::vector<Waiting> waiting_;
  int looks_ = 0;
  std::chrono::steady_clock::time_point first_look_;
};

absl::StatusOr<int> record(const RecordOptions& options, const SignalScope& signals) {
  FlightOptions flight = options.flight;
  flight.recorder = recorder_facts();
  absl::StatusOr<RecordingBuffer> recording =
      make_recording_buffer(options.buffer, options.kernel);
  if (!recording.ok()) return recording.status();
  Buffer& buffer = recording->buffer;
  const absl::StatusOr<JoinRequest> request = join_request(options, buffer);
  if (!request.ok()) return request.status();
  const CollectorLock lock(buffer.view());
  flight.polled = recording->perf.get();
  const absl::StatusOr<std::unique_ptr<Recorder>> made =
      make_recorder(buffer, std::move(flight), options.output);
  if (!made.ok()) return made.status();
  Recorder& recorder = **made;
  if (!buffer.warning().empty()) reader::print_warning(buffer.warning());
  if (!options.record_filter.empty()) {
    absl::Status filtered =
        set_record_filter(buffer.view(), options.record_filter.text());
    if (!filtered.ok()) return filtered;
  }
  set_gate(buffer.view(), ARCTRACE_GATE_ALL & ~options.off);
  const uint32_t clock = buffer.view().geometry().clock;
  std::vector<ProcessThreads> threads;
  for (const pid_t pid : options.pids) {
    threads.emplace_back(pid, clock);
  }
  const std::vector<pid_t> joined =
      join_processes(options.pids, *request, recording->kernel.writer.get());
  if (joined.empty()) return 2;
  const auto look_at_threads = [&threads] {
    for (ProcessThreads& its : threads) its.look();
  };
  look_at_threads();
  const std::string program = program_of(joined.front());
  absl::Status published = recorder.publish();
  if (!published.ok()) reader::print_message(std::string(published.message()));
  wait_for_end(signals, options.duration_ns, recorder, [&] {
    look_at_threads();
    return have_ended(joined);
  });
  // The recorder knows no names to filter by.
  const bool is_filtered =
      options.filter.excludes_functions() || !options.record_filter.empty();
  for (ProcessThreads& its : threads) recorder.threads_joined(its.finish(!is_filtered));
  if (recording->kernel.writer != nullptr) {
    close_gate(buffer.view());
    recording->kernel.detach();
  }
  CollectorSummary summary = recorder.finish();
  store_symbols(recorder, options.output, signals, summary);
  warn_of_unmatched(options.filter,
                    IpcAtomics::load_relaxed(buffer.view().control().patterns_matched),
                    program);
  warn_of_unmatched_events(summary, options.record_filter);
  warn_of_untraced(summary);
  warn_of_identities(summary);
  tell_of_patches(summary, options);
  keep_unsaved(buffer, summary, options.output.path);
  if (summary.totals.records == 0 && options.library_calls == LibraryCalls::kProgram) {
    reader::print_message(
        "the program itself called no library; --nest-libcall also records the calls "
        "that "
        "its libraries make");
  }
  reader::print_message(recording_summary_line(summary, options.output.path));
  const bool is_whole = published.ok() && joined.size() == options.pids.size();
  return is_whole && !is_cut_off(summary) ? 0 : 2;
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
  const SignalScope signals;
  return record(options, signals);
}

}  // namespace arctrace::cli
