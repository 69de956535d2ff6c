// The recorded command as our child: started with the shim, waited for with signals
// passed on as a shell's job would get them.
#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace arctrace::cli {

// Blocks the signals that ChildProcess::wait() handles and ignores SIGPIPE, so that a
// closed output pipe is an error and not our end; undone by the destructor.
class SignalScope {
 public:
  SignalScope();
  SignalScope(const SignalScope&) = delete;
  SignalScope& operator=(const SignalScope&) = delete;
  ~SignalScope();

  const sigset_t& handled() const { return handled_; }
  const sigset_t& mask_before() const { return mask_before_; }
  bool pipe_was_ignored() const { return pipe_was_ignored_; }

 private:
  sigset_t handled_;
  sigset_t mask_before_;
  struct sigaction pipe_before_;
  bool pipe_was_ignored_;
};

// Something to be done once, when some time has passed while signals are waited for.
class Deadline {
 public:
  Deadline() = default;  // never
  // `after_ns` 0: never.
  Deadline(uint64_t after_ns, std::function<void()> action);

  // The next signal of the set, or -1: the action was taken, or look again.
  int wait_signal(const sigset_t& signals, siginfo_t* info);

 private:
  uint64_t due_ns_ = 0;  // on CLOCK_MONOTONIC; 0: never, or no more
  std::function<void()> action_;
};

// What a shell exits with when it can't start a command: 127 if it is not there, 126 if
// it can't be run; 2 if that is no fault of the command's.
int exit_status_of(const absl::Status& start_error);

class ChildProcess {
 public:
  // Runs `command` (program and arguments, PATH searched) with `variables` ("NAME=value")
  // set in its environment. `output_to_error`: its standard output becomes our standard
  // error, because our own standard output is taken.
  static absl::StatusOr<ChildProcess> start(const std::vector<std::string>& command,
                                            const std::vector<std::string>& variables,
                                            bool output_to_error,
                                            const SignalScope& signals);

  // Waits for its end and returns its wait status. SIGTERM, SIGHUP and a SIGINT or
  // SIGQUIT that did not come from the terminal are passed on. The third interrupt stops
  // waiting: then -1. Each SIGUSR2 calls on_snapshot().
  int wait(const SignalScope& signals, const std::function<void()>& on_snapshot,
           Deadline deadline = {});

  pid_t pid() const { return pid_; }

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}
  pid_t pid_;
};

// From now on orphaned descendants become our children, so that they can be waited for.
void adopt_orphans();

// Waits until no child is left, or for an interrupt. REQUIRES: adopt_orphans() before.
void wait_for_descendants(const SignalScope& signals,
                          const std::function<void()>& on_snapshot);

}  // namespace arctrace::cli
