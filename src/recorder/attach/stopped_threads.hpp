// All threads of another process but one, which stand still at the same time.
#pragma once

#include <absl/status/status.h>
#include <sys/types.h>

#include <chrono>
#include <vector>

#include "src/recorder/attach/join_target.hpp"
#include "src/recorder/attach/priorities.hpp"
#include "src/recorder/attach/stopped_thread.hpp"

namespace arctrace {

class StoppedThreads {
 public:
  // Stops all threads of the process but `running`, also those that begin meanwhile. One
  // that waits for a CPU has the priority of `hurried` until it has stopped. Error: one
  // of them can't be stopped at present. REQUIRES: is not called twice.
  absl::Status stop_all_but(pid_t pid, pid_t running, HurriedThread& hurried);

  // Lets threads that stand in this code run on, with the priority of `hurried`, until
  // none does. Error: one stays there.
  absl::Status leave_code(const std::vector<CodeMemory>& code, HurriedThread& hurried);

  const std::vector<StoppedThread>& threads() const { return threads_; }
  // When the first of them was asked to stop.
  std::chrono::steady_clock::time_point since() const { return since_; }

 private:
  absl::Status stop_these(pid_t pid, const std::vector<pid_t>& tids,
                          HurriedThread& hurried);

  std::vector<StoppedThread> threads_;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

}  // namespace arctrace
