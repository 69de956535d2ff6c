// The frames that the kernel's records make above a thread's own (SPEC.md READ-6).
#pragma once

#include <cstdint>
#include <vector>

#include "reader/replay/frame_stack.hpp"
#include "reader/replay/kernel_functions.hpp"

namespace arctrace::reader {

// A system call is a frame from SYSCALL to SYSCALL_END, a wait for a lock is one from its
// first CONTENTION to CONTENTION_END; faults and signals are calls that take no time.
//
// Ends may be missing: when a thread calls the kernel, gets a signal, or writes a record
// itself, it has left all of the kernel's frames. An end that fits no frame is ignored.
class KernelFrames {
 public:
  // Both must outlive this object.
  KernelFrames(FrameStack& frames, ReplayState& state);

  // A record about the running thread, at the frames' present time. A frame that it opens
  // has these flags (enum FrameFlag).
  void apply(const Record& record, uint16_t flags = 0);

  bool has_open() const { return !open_.empty(); }

  // The thread is no longer in the kernel. `lost`: the ends of its frames were lost.
  void leave_all(bool lost);

 private:
  struct Open {
    bool is_syscall;
    uint64_t lock;  // that a wait is for
  };

  void end(bool is_syscall, uint64_t lock);
  void leave(size_t count, bool lost);
  void count(FunctionId function);

  FrameStack& frames_;
  ReplayState& state_;
  std::vector<Open> open_;  // the kernel's frames on frames_, innermost last
};

}  // namespace arctrace::reader
