#include "reader/cli/record/record_joined.hpp"

#include <memory>
#include <utility>
#include <vector>

#include "reader/cli/record/child_process.hpp"
#include "reader/cli/record/file_symbols.hpp"
#include "reader/cli/record/join_processes.hpp"
#include "reader/cli/record/record_session.hpp"
#include "reader/cli/record/recording_buffer.hpp"
#include "reader/render/output.hpp"
#include "src/recorder/drain/collector_lock.hpp"
#include "src/recorder/snapshot/flight_recorder.hpp"

namespace arctrace::cli {
namespace {

absl::StatusOr<int> record(const RecordOptions& options, const SignalScope& signals) {
  absl::StatusOr<RecordingBuffer> recording =
      make_recording_buffer(options.buffer, options.kernel);
  if (!recording.ok()) return recording.status();
  Buffer& buffer = recording->buffer;
  const absl::StatusOr<JoinRequest> request = join_request(options, buffer, false);
  if (!request.ok()) return request.status();
  const CollectorLock lock(buffer.view());
  FlightOptions flight = options.flight;
  flight.polled = recording->perf.get();
  const absl::StatusOr<std::unique_ptr<Recorder>> made =
      make_recorder(buffer, std::move(flight), options.output);
  if (!made.ok()) return made.status();
  Recorder& recorder = **made;
  if (!buffer.warning().empty()) reader::print_warning(buffer.warning());
  if (!options.record_filter.empty()) {
    absl::Status filtered = buffer.set_record_filter(options.record_filter.text());
    if (!filtered.ok()) return filtered;
  }
  buffer.set_gate(ARCTRACE_GATE_ALL);
  const std::vector<pid_t> joined =
      join_processes(options.pids, *request, recording->kernel_writer());
  if (joined.empty()) return 2;
  absl::Status published = recorder.publish();
  if (!published.ok()) reader::print_message(std::string(published.message()));
  wait_for_end(signals, options.duration_ns, recorder,
               [&joined] { return have_ended(joined); });
  if (recording->bpf) {
    buffer.close_gate();
    recording->bpf.reset();  // before its blocks are taken back
  }
  CollectorSummary summary = recorder.finish();
  store_symbols(recorder, options.output, signals, summary);
  warn_of_untraced(summary);
  warn_of_identities(summary);
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
  if (!options.filter.patch.empty()) {
    return absl::InvalidArgumentError(
        "record: -P does not apply with --pid: programs are patched when they begin");
  }
  const SignalScope signals;
  return record(options, signals);
}

}  // namespace arctrace::cli
