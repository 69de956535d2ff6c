// The threads of a process that wait in the kernel all the time, and in which functions
// they do. Nothing is done to them: what is read stands still while they wait.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace arctrace {

struct WaitingThread {
  pid_t tid = 0;  // in the recorder's PID namespace
  uint64_t stack_pointer = 0;
  uint64_t code = 0;      // where it goes on
  uint64_t switches = 0;  // how often it has left a CPU
  bool operator==(const WaitingThread&) const = default;
};

// Those that wait in a system call now.
std::vector<WaitingThread> find_waiting_threads(pid_t pid);

// The functions that a thread is in.
struct WaitingStack {
  pid_t tid = 0;
  std::vector<uint64_t> functions;  // their addresses, the outermost first
  bool is_whole = false;            // up to the thread's first function
};

// Unwinds those of the threads that have not run since they were found. Some hundred us
// each.
std::vector<WaitingStack> unwind_waiting_threads(pid_t pid,
                                                 const std::vector<WaitingThread>& since);

}  // namespace arctrace
