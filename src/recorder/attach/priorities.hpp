// Priorities while a process is joined: what stops its threads, and the thread that is
// borrowed, are not to wait for a CPU among all others.
#pragma once

#include <sched.h>
#include <sys/types.h>

namespace arctrace {

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

// The same for a thread of another process, one at a time. Each stop of it would
// otherwise cost it its turn, where many threads compute. A child process gives the
// thread its own priority back if this process dies before, by SIGKILL for example.
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
  // Gives the thread its own priority back, if it has another.
  void calm();

 private:
  pid_t guard_ = -1;  // the child; -1: there is none, and no thread is hurried
  int to_guard_ = -1;
  Before before_;
};

}  // namespace arctrace
