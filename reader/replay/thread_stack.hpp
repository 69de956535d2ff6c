// One thread's call stack, rebuilt from its records and the kernel's about it.
#pragma once

#include <cstdint>
#include <string>

#include "reader/replay/frame_stack.hpp"
#include "reader/replay/kernel_frames.hpp"
#include "reader/replay/thread_schedule.hpp"

namespace arctrace::reader {

// Missing records: an EXIT_NAMED whose key lies deeper pops to it, unless the writer told
// all its frames and so has looked itself; one on an empty stack was entered before
// tracing began and becomes the frame around all so far; one that is found nowhere
// changes nothing and is counted. STACK says what the stack is after a loss, and must
// agree with what is known without one.
//
// A thread that writes a record runs, and is in none of the kernel's frames: what says
// otherwise has lost its end.
class ThreadStack {
 public:
  // `state` must outlive this object. The first STACK of a fork child's thread is what
  // fork copied. A thread that only the kernel's records name has frames of the kernel's.
  ThreadStack(ReplayState& state, ThreadIndex thread);

  // The thread's next record, in the order it wrote them. Definitions and records of
  // the kernel writer are not part of the stack and are ignored.
  void apply(const Record& record);

  // What the kernel says of the thread, in order of time with its records: what it does
  // (SYSCALL and such, which say that it runs), that it is not on a CPU any more (in the
  // kernel's TASK_* state; 0: it could go on), may run again, does. From its first record
  // to its end.
  void apply_kernel(const Record& record);
  void left_cpu(int64_t time_ns, uint32_t task_state);
  void woken(int64_t time_ns, const Waker& waker);
  void got_cpu(int64_t time_ns);

  // A loss that only the collector knew of, at an unknown time.
  void add_residual_loss(uint64_t count);

  // After the last record: closes what is open, sums up.
  void finish();

  // False if nothing of the thread is in the filter's time range.
  bool in_report() const {
    return has_residual_loss_ || (frames_.was_in_range() && frames_.has_begun());
  }
  NodeIndex root() const { return frames_.root(); }
  // Of the innermost shown frame.
  NodeIndex innermost() const { return frames_.top().node; }
  // In the time range.
  int64_t start_ns() const { return frames_.start_ns(); }
  int64_t stop_ns() const { return frames_.stop_ns(); }
  // Open frames: what STACK calls depth.
  uint64_t depth() const { return frames_.depth(); }

 private:
  void begin(int64_t time_ns);
  void run_until(int64_t time_ns);
  bool follows_kernel(int64_t time_ns);

  FunctionId resolve(uint64_t key);
  void enter(uint64_t key);
  void exit(const Record& record);
  void exit_named(const Record& record);
  void unwind(const Record& record);
  void vfork_end(const Record& record);
  void stack(const Record& record);
  void lost(const Record& record);
  void orphan(const Record& record, FunctionId function);
  void adopt(const Record& record);
  void add_finding(Rule rule, const Record& record, const std::string& what);

  ReplayState& state_;
  const ThreadIndex thread_;
  const ProcessIndex process_;
  const bool kernel_only_;
  bool fork_child_ = false;
  bool has_residual_loss_ = false;
  bool has_calls_ = false;  // had a record other than STACK and LOST
  bool broken_ = true;      // records are missing: the stack is unknown until STACK
  bool all_told_ = false;   // the writer keeps all frames that are open, as STACK said
  bool is_gone_ = false;    // it has exited, or is another program's
  uint32_t adopted_ = 0;
  FrameStack frames_;
  KernelFrames kernel_;
  ThreadSchedule schedule_;
};

}  // namespace arctrace::reader
