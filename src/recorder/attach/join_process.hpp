// Joins a process that runs to a session, and tells which of its threads wait, and in
// which functions.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace arctrace::recorder {

// Makes a process that runs load the shim and join a session.

class PatchImages;

struct JoinRequest {
  std::string shim;     // absolute path of the library
  std::string library;  // of libarctrace.so, which the shim needs
  std::string session;  // path of the buffer
  std::string options;  // the shim's, encoded (src/shim_protocol/options.hpp)
  // Null: no functions are patched.
  std::shared_ptr<PatchImages> patches;
};

struct Joined {
  std::string name;         // of the process
  uint64_t stopped_ns = 0;  // for how long one of its threads was stopped
  // For how long all of its threads were stopped, at most: to leave an earlier session,
  // or to change code.
  uint64_t all_stopped_ns = 0;
  // Hooks that are code are missing if the code could not be changed: why no change was
  // made; and how many changes were skipped, because a thread stood there.
  absl::Status code_status;
  uint64_t changes_skipped = 0;
};

// Whether the process `pid` can probably be joined. Error: why not, a line with what to
// do; nothing was done to it.
absl::Status can_join_process(pid_t pid, const JoinRequest& request);

// Makes it join. Error: why the process `pid` cannot be joined, a line with what to do.
// Then it goes on as it was; it may have loaded the library, which does nothing.
absl::StatusOr<Joined> join_process(pid_t pid, const JoinRequest& request);

// The threads of a process that wait in the kernel all the time, and the functions in
// which they wait. The threads are not touched: their stacks do not change while they
// wait.
struct WaitingThread {
  pid_t tid = 0;  // in the recorder's PID namespace
  uint64_t stack_pointer = 0;
  uint64_t code = 0;      // where it goes on
  uint64_t switches = 0;  // how often it was switched off a CPU
  bool operator==(const WaitingThread&) const = default;
};

// The threads that wait in a system call now.
std::vector<WaitingThread> find_waiting_threads(pid_t pid);

// The functions that a thread is in.
struct WaitingStack {
  pid_t tid = 0;
  std::vector<uint64_t> functions;  // their addresses, the outermost first
  bool is_whole = false;            // up to the thread's first function
};

// Unwinds those of the threads that have not run since they were found. Each takes some
// hundred us.
std::vector<WaitingStack> unwind_waiting_threads(pid_t pid,
                                                 const std::vector<WaitingThread>& since);

}  // namespace arctrace::recorder
