#include "reader/cli/record/own_session.hpp"

#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "reader/cli/record/join_processes.hpp"
#include "reader/cli/record/session_variables.hpp"
#include "reader/render/output.hpp"
#include "src/buffer/clock.hpp"
#include "src/protocol/moments.hpp"
#include "src/recorder/buffer/recording_control.hpp"

namespace arctrace::cli {

OwnSession::OwnSession(RecordingBuffer recording)
    : recording_(std::move(recording)), lock_(recording_.buffer.view()) {}

absl::StatusOr<std::unique_ptr<OwnSession>> OwnSession::make(RecordOptions& options) {
  options.buffer.mode = ARCTRACE_MODE_OVERWRITE;
  absl::StatusOr<RecordingBuffer> recording =
      make_recording_buffer(options.buffer, options.kernel);
  if (!recording.ok()) return recording.status();
  options.session = recording->buffer.path();
  return std::unique_ptr<OwnSession>(new OwnSession(*std::move(recording)));
}

void OwnSession::open_gate() {
  Buffer& buffer = recording_.buffer;
  if (!buffer.warning().empty()) reader::print_warning(buffer.warning());
  set_gate(buffer.view(), ARCTRACE_GATE_ALL);
}

absl::StatusOr<std::unique_ptr<OwnSession>> OwnSession::start(RecordOptions options,
                                                              bool output_to_error,
                                                              const SignalScope& signals,
                                                              int& exit_status) {
  exit_status = 2;
  absl::StatusOr<std::unique_ptr<OwnSession>> session = make(options);
  if (!session.ok()) return session.status();
  const absl::StatusOr<std::vector<std::string>> variables = session_environment(options);
  if (!variables.ok()) return variables.status();
  (*session)->open_gate();
  const Buffer& buffer = (*session)->buffer();
  const uint64_t start_ticks = read_ticks(buffer.view().geometry().clock);
  absl::StatusOr<ChildProcess> child =
      ChildProcess::start(options.command, *variables, output_to_error, signals);
  if (!child.ok()) {
    exit_status = exit_status_of(child.status());
    return child.status();
  }
  const ExecMoment exec{static_cast<uint32_t>(child->pid()),
                        read_ticks(buffer.view().geometry().clock) - start_ticks};
  note_moment(execs(buffer.view()), start_ticks, exec.pack());
  (*session)->recording_.end_tracing_children();
  (*session)->child_ = *child;
  return session;
}

absl::StatusOr<std::unique_ptr<OwnSession>> OwnSession::join(RecordOptions options) {
  absl::StatusOr<std::unique_ptr<OwnSession>> session = make(options);
  if (!session.ok()) return session.status();
  const absl::StatusOr<JoinRequest> request = join_request(options, (*session)->buffer());
  if (!request.ok()) return request.status();
  (*session)->open_gate();
  (*session)->joined_ =
      join_processes(options.pids, *request, (*session)->recording_.kernel.writer.get());
  if ((*session)->joined_.empty()) {
    return absl::FailedPreconditionError("no process was joined");
  }
  return session;
}

std::optional<OwnSession::End> OwnSession::wait_for_end(const SignalScope& signals,
                                                        uint64_t timeout_ns) {
  if (child_.has_value()) {
    const std::optional<int> status = child_->wait_for(signals, timeout_ns);
    if (!status.has_value()) return std::nullopt;
    return End{.wait_status = *status};
  }
  if (signals.take_end(timeout_ns) != 0) return End{.is_interrupted = true};
  if (have_ended(joined_)) return End{};
  return std::nullopt;
}

void OwnSession::poll() {
  if (is_open_ && recording_.perf != nullptr) recording_.perf->poll();
}

void OwnSession::close() {
  if (!is_open_) return;
  is_open_ = false;
  if (recording_.perf != nullptr) recording_.perf->finish();
  close_gate(recording_.buffer.view());
  recording_.kernel.detach();
}

}  // namespace arctrace::cli
