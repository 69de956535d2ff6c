// A session that the command makes for one command and looks at itself: its buffer is a
// ring that nobody drains.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <optional>

#include "reader/cli/options/record_options.hpp"
#include "reader/cli/record/child_process.hpp"
#include "reader/cli/record/recording_buffer.hpp"
#include "src/recorder/drain/collector_lock.hpp"

namespace arctrace::cli {

class OwnSession {
 public:
  // Makes the session and starts options.command in it, with its output as
  // `output_to_error` says (child_process.hpp). Error: there is no session; `exit_status`
  // is then what this process is to exit with if the command could not be started, else
  // 2.
  static absl::StatusOr<std::unique_ptr<OwnSession>> start(RecordOptions options,
                                                           bool output_to_error,
                                                           const SignalScope& signals,
                                                           int& exit_status);

  const Buffer& buffer() const { return recording_.buffer; }
  ChildProcess& child() { return *child_; }

  // To be called often: has the kernel's records written, where that takes our help.
  void poll();
  // Nothing is recorded from now on.
  void close();

 private:
  explicit OwnSession(RecordingBuffer recording);

  RecordingBuffer recording_;
  const CollectorLock lock_;
  std::optional<ChildProcess> child_;
  bool is_open_ = true;
};

}  // namespace arctrace::cli
