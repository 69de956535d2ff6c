// The frames that the kernel's records make on top of a thread's own ones.
#pragma once

#include <cstdint>
#include <vector>

#include "reader/replay/frame_stack.hpp"
#include "reader/replay/kernel_functions.hpp"

namespace arctrace::reader {

// A system call is a frame from SYSCALL to SYSCALL_END, a wait for a lock one from its
// first CONTENTION to CONTENTION_END; faults and signals are calls that take no time.
//
// Ends may be missing: a thread that calls the kernel, gets a signal or writes a record
// itself was in none of its frames any more. An end that fits no frame is nothing.
class KernelFrames {
 public:
  // Both must outlive this object.
  KernelFrames(FrameStack& frames, ReplayState& state);

  // A record about the running thread, at the frames' present time.
  void apply(const Record& record);

  // The thread is not in the kernel any more. `lost`: the ends of its frames were.
  void leave_all(bool lost);

 private:
  struct Open {
    bool is_syscall;
    uint64_t lock;  // of a wait
  };

  void end(bool is_syscall, uint64_t lock);
  void leave(size_t count, bool lost);
  void count(FunctionId function);

  FrameStack& frames_;
  ReplayState& state_;
  std::vector<Open> open_;  // the frames' kernel_frames()
};

}  // namespace arctrace::reader
