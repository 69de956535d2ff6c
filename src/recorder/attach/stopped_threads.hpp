// All threads of another process but one, which stand still at the same time.
#pragma once

#include <absl/status/statusor.h>
#include <sched.h>
#include <sys/types.h>

#include <vector>

#include "src/recorder/attach/join_target.hpp"
#include "src/recorder/attach/stopped_thread.hpp"

namespace arctrace {

// Real-time priority for the calling thread, as long as the object exists, if it may have
// that. Threads that wait for a CPU stop when they get one: what stops them is not to
// wait among them.
class RealTimePriority {
 public:
  RealTimePriority();
  ~RealTimePriority();
  RealTimePriority(const RealTimePriority&) = delete;
  RealTimePriority& operator=(const RealTimePriority&) = delete;

 private:
  int policy_ = 0;  // before
  sched_param before_{};
  bool has_changed_ = false;
};

class StoppedThreads {
 public:
  // Stops all threads of the process but `running`, also those that begin meanwhile.
  // Error: one of them can't be stopped at present.
  static absl::StatusOr<StoppedThreads> stop_all_but(pid_t pid, pid_t running);

  // Lets threads that stand in this code run on, until none does. Error: one stays there.
  absl::Status leave_code(const std::vector<CodeRange>& code);

 private:
  std::vector<StoppedThread> threads_;
};

}  // namespace arctrace
