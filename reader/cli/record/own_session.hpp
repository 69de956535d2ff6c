// A session that this command makes for a program, or for processes that run already, and
// looks at itself: its buffer is a ring that nobody drains.
#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

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

  // The same for options.pids, of which it says in a line each how joining went. Error:
  // none was joined.
  static absl::StatusOr<std::unique_ptr<OwnSession>> join(RecordOptions options);

  const Buffer& buffer() const { return recording_.buffer; }
  // Whether it is of a command, whose process child() is then.
  bool has_child() const { return child_.has_value(); }
  ChildProcess& child() { return *child_; }

  // How what is recorded has ended.
  struct End {
    int wait_status = 0;          // the command's; of processes that were joined: 0
    bool is_interrupted = false;  // those go on, but this process is asked to end
  };
  // Waits that long for the end of the command, to which signals are passed on, or of all
  // processes that were joined. nullopt: it has not come.
  std::optional<End> wait_for_end(const SignalScope& signals, uint64_t timeout_ns);

  // To be called often: has the kernel's records written, where that takes our help.
  void poll();
  // Nothing is recorded from now on.
  void close();

 private:
  explicit OwnSession(RecordingBuffer recording);
  // Of which nobody is part yet. Sets options.session.
  static absl::StatusOr<std::unique_ptr<OwnSession>> make(RecordOptions& options);
  void open_gate();

  RecordingBuffer recording_;
  const CollectorLock lock_;
  std::optional<ChildProcess> child_;
  std::vector<pid_t> joined_;
  bool is_open_ = true;
};

}  // namespace arctrace::cli
