// The threads of a process that was joined, and in which functions those of them are that
// wait all the time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "src/recorder/attach/waiting_threads.hpp"
#include "src/recorder/file/joined_threads.hpp"

namespace arctrace::recording {

class ProcessThreads {
 public:
  // Looks which threads the process has. `clock`: of the buffer, enum arctrace_clock.
  ProcessThreads(pid_t pid, uint32_t clock);

  // Looks which of them wait, and when it is called again after a while once more: a
  // thread that was stopped to join the process may not wait again yet.
  void look();

  // The threads, with the functions in which those are that have waited since then.
  // `with_functions`: else without. To be called once.
  JoinedThreads finish(bool with_functions);

 private:
  struct Waiting {
    WaitingThread thread;
    uint64_t since_ticks;
  };

  const pid_t pid_;
  const uint32_t clock_;
  JoinedThreads all_;
  std::vector<Waiting> waiting_;
  int looks_ = 0;
  std::chrono::steady_clock::time_point first_look_;
};

}  // namespace arctrace::recording
