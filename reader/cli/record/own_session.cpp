#include "reader/cli/record/own_session.hpp"

#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "reader/cli/record/record_session.hpp"
#include "reader/cli/record/session_variables.hpp"
#include "reader/render/output.hpp"
#include "src/buffer/clock.hpp"
#include "src/protocol/moments.hpp"

namespace arctrace::cli {

OwnSession::OwnSession(RecordingBuffer recording)
    : recording_(std::move(recording)), lock_(recording_.buffer.view()) {}

absl::StatusOr<std::unique_ptr<OwnSession>> OwnSession::start(RecordOptions options,
                                                              bool output_to_error,
                                                              const SignalScope& signals,
                                                              int& exit_status) {
  exit_status = 2;
  options.buffer.mode = ARCTRACE_MODE_OVERWRITE;
  absl::StatusOr<RecordingBuffer> recording =
      make_recording_buffer(options.buffer, options.kernel);
  if (!recording.ok()) return recording.status();
  options.session = recording->buffer.path();
  const absl::StatusOr<std::vector<std::string>> variables = session_environment(options);
  if (!variables.ok()) return variables.status();
  std::unique_ptr<OwnSession> session(new OwnSession(*std::move(recording)));
  Buffer& buffer = session->recording_.buffer;
  if (!buffer.warning().empty()) reader::print_warning(buffer.warning());
  buffer.set_gate(ARCTRACE_GATE_ALL);
  const uint64_t start_ticks = read_ticks(buffer.view().geometry().clock);
  absl::StatusOr<ChildProcess> child =
      ChildProcess::start(options.command, *variables, output_to_error, signals);
  if (!child.ok()) {
    exit_status = exit_status_of(child.status());
    return child.status();
  }
  note_moment(execs(buffer.view()), start_ticks, static_cast<uint32_t>(child->pid()));
  if (session->recording_.bpf) {
    session->recording_.bpf->trace_process(static_cast<uint32_t>(getpid()), false);
  }
  session->child_ = *child;
  return session;
}

void OwnSession::poll() {
  if (is_open_ && recording_.perf != nullptr) recording_.perf->poll();
}

void OwnSession::close() {
  if (!is_open_) return;
  is_open_ = false;
  if (recording_.perf != nullptr) recording_.perf->finish();
  recording_.buffer.close_gate();
  recording_.bpf.reset();
}

}  // namespace arctrace::cli
