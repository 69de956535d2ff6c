// The recorded command as our child process: it gets the environment of the session, and
// the signals that it would get as a job of a shell.
#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace arctrace::recording {

// Has this process ignore SIGUSR2, which asks for a snapshot, wherever no SignalScope
// handles it: it would end the recorder before it listens, and while it ends. To be
// called first of all. Commands start with the disposition that this process started
// with.
void ignore_snapshot_signal();

// Blocks the signals that ChildProcess::wait() handles, and ignores SIGPIPE and SIGXFSZ,
// so that a closed output pipe or a limit of file sizes is an error and does not end this
// process. The destructor undoes all, and drops signals that came too late to be handled:
// the command that they would have ended has ended.
class SignalScope {
 public:
  SignalScope();
  SignalScope(const SignalScope&) = delete;
  SignalScope& operator=(const SignalScope&) = delete;
  ~SignalScope();

  const sigset_t& handled() const { return handled_; }
  const sigset_t& mask_before() const { return mask_before_; }
  bool pipe_was_ignored() const { return pipe_before_.sa_handler == SIG_IGN; }
  bool size_limit_was_ignored() const { return size_limit_before_.sa_handler == SIG_IGN; }

  // Takes a signal that asks this process to end, if one comes within that time (less
  // than a second); else 0.
  int take_end(uint64_t timeout_ns = 0) const;
  // Whether such a signal is pending.
  bool is_end_pending() const;

 private:
  sigset_t handled_;
  sigset_t mask_before_;
  struct sigaction pipe_before_;
  struct sigaction size_limit_before_;
};

// An action to take once, when a time has passed while waiting for signals.
class Deadline {
 public:
  Deadline() = default;  // never
  // `after_ns`: 0: never.
  Deadline(uint64_t after_ns, std::function<void()> action);

  // Returns the next signal of the set, or -1 if the action was taken or the wait was
  // interrupted.
  int wait_signal(const sigset_t& signals, siginfo_t* info);

 private:
  uint64_t due_ns_ = 0;  // on CLOCK_MONOTONIC; 0: never, or already taken
  std::function<void()> action_;
};

// The exit status of a shell that cannot start a command: 127 if it does not exist, 126
// if it cannot be executed. 2 if the cause is not the command, but a lack of resources.
int exit_status_of(const absl::Status& start_error);

class ChildProcess {
 public:
  // Runs `command` (program and arguments, PATH searched) with `variables` ("NAME=value")
  // set in its environment. `output_to_error`: its standard output is this process'
  // standard error, because this process' standard output is used for the trace.
  static absl::StatusOr<ChildProcess> start(const std::vector<std::string>& command,
                                            const std::vector<std::string>& variables,
                                            bool output_to_error,
                                            const SignalScope& signals);

  // Waits for its end and returns its wait status. Passes on SIGTERM, SIGHUP, and a
  // SIGINT or SIGQUIT that did not come from the terminal. Returns -1 at the third
  // SIGINT, without waiting any longer. Calls on_snapshot() at each SIGUSR2.
  int wait(const SignalScope& signals, const std::function<void()>& on_snapshot,
           Deadline deadline = {});

  // As wait(), for a limited time: nullopt if the command has not ended when a signal
  // came or the time was over.
  std::optional<int> wait_for(const SignalScope& signals, uint64_t timeout_ns);

  pid_t pid() const { return pid_; }

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}
  // Passes a signal on. False: the user wants to wait no longer.
  bool pass_on(int signal, const siginfo_t& info);

  pid_t pid_;
  int interrupts_ = 0;
};

// This process' environment, in which `variables` ("NAME=value") replace those of the
// same names, and a null pointer. Valid as long as both.
std::vector<char*> environment_with(const std::vector<std::string>& variables);

// Exits, or ends by a signal, as the command with this wait status did, so that the
// parent of this process sees the same.
int exit_like(int wait_status);

// Makes orphaned descendants children of this process from now on, so that it can wait
// for them.
void adopt_orphans();

// Waits until no child is left, or for SIGINT. REQUIRES: adopt_orphans() was called.
void wait_for_descendants(const SignalScope& signals,
                          const std::function<void()>& on_snapshot);

}  // namespace arctrace::recording
