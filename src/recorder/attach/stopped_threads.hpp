// Stops all threads of another process but one at the same time, and sets the priorities
// of the threads that are involved.
#pragma once

#include <absl/status/status.h>
#include <sched.h>
#include <sys/types.h>

#include <chrono>
#include <vector>

#include "src/recorder/attach/join_target.hpp"
#include "src/recorder/attach/stopped_thread.hpp"

namespace arctrace::recorder {

// Priorities while a process is joined: the thread that stops the process' threads, and
// the thread that is borrowed, must not wait for a CPU among all others.

// Real-time priority for the calling thread, as long as the object exists, if it may have
// that.
class RealTimePriority {
 public:
  RealTimePriority();
  ~RealTimePriority();
  bool was_had() const { return has_changed_; }
  RealTimePriority(const RealTimePriority&) = delete;
  RealTimePriority& operator=(const RealTimePriority&) = delete;

 private:
  int policy_ = 0;  // before
  sched_param before_{};
  bool has_changed_ = false;
};

// Real-time priority for a thread of another process, one at a time. Each stop of it
// would otherwise cost it its turn, where many threads compute. If this process dies
// before, by SIGKILL for example, a child process gives the thread its own priority back.
class HurriedThread {
 public:
  // A thread's own priority.
  struct Before {
    pid_t tid = 0;  // 0: of none
    int policy = -1;
    sched_param parameters{};
  };
  // Starts the child, which has the caller's priority, if that is real-time. To be called
  // before the thread is stopped.
  explicit HurriedThread(const RealTimePriority& own);
  ~HurriedThread();
  HurriedThread(const HurriedThread&) = delete;
  HurriedThread& operator=(const HurriedThread&) = delete;

  void hurry(pid_t tid);
  // Gives the thread its own priority back, if it was changed.
  void calm();

 private:
  pid_t guard_ = -1;  // the child; -1: there is none, and no thread is hurried
  int to_guard_ = -1;
  Before before_;
};

class StoppedThreads {
 public:
  // Stops all threads of the process but `running`, also those that begin meanwhile. One
  // that waits for a CPU has the priority of `hurried` until it has stopped. Error: one
  // of them can't be stopped at present. REQUIRES: is not called twice.
  absl::Status stop_all_but(pid_t pid, pid_t running, HurriedThread& hurried);

  // Lets threads whose program counters are in this code run on, with the priority of
  // `hurried`, until none is there. Error: one stays there.
  absl::Status leave_code(const std::vector<CodeMemory>& code, HurriedThread& hurried);

  const std::vector<StoppedThread>& threads() const { return threads_; }
  // When the first of the threads was asked to stop.
  std::chrono::steady_clock::time_point since() const { return since_; }

 private:
  absl::Status stop_these(pid_t pid, const std::vector<pid_t>& tids,
                          HurriedThread& hurried);

  std::vector<StoppedThread> threads_;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

}  // namespace arctrace::recorder
