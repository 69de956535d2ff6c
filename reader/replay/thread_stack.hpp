// One thread's call stack, rebuilt from its own records and the kernel's about it
// (SPEC.md READ-3, READ-6 and READ-7).
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reader/replay/frame_stack.hpp"
#include "reader/replay/kernel_frames.hpp"
#include "reader/replay/thread_schedule.hpp"

namespace arctrace::reader {

// Records may be missing. So an EXIT_NAMED whose key is not the innermost frame's leaves
// all frames up to the one that has it, unless the writer has reported all its frames:
// then it has searched them itself. On an empty stack an EXIT_NAMED is of a function that
// was entered before tracing began: its frame is put around all that was recorded so far.
// An exit that fits no frame changes nothing and is counted. After a loss, STACK says
// what the stack is; without one it must agree with the known stack.
//
// A thread may have a stack for each of its coroutines (READ-10): what is said here of
// its frames holds for each.
//
// A thread that writes a record runs, and is not in the kernel; if it seems to be, the
// end of the kernel's frame was lost.
class ThreadStack {
 public:
  // The frames that were open when the thread began to fork.
  struct ForkPoint {
    int64_t time_ns = INT64_MIN;  // INT64_MIN: there is none; INT64_MAX: not known
    std::vector<uint64_t> keys;   // outermost first
    bool is_guess = false;        // when it forked is not known
  };

  // `state` must outlive this object. A thread that only the kernel's records name has
  // only the kernel's frames.
  ThreadStack(ReplayState& state, ThreadIndex thread);

  // The thread is the one of a fork child, which begins in its parent's frames. To be
  // called before the first record. If the thread's own first STACK has frames, these are
  // the stack that fork copied.
  void inherit(ForkPoint parent) { parent_ = std::move(parent); }
  // Where the last fork() of this thread was called, once; without one, where it is now.
  ForkPoint take_fork_point();
  // What is open now, at the time of a fork that is known, of which no child has begun
  // yet.
  ForkPoint fork_point_at(int64_t time_ns);
  int64_t fork_ns() const { return fork_point_.time_ns; }

  // The thread's next record, in the order in which it wrote them. Definitions and
  // records of the kernel writer are not part of the stack and are ignored.
  void apply(const Record& record);

  // What the kernel's records say about the thread, in order of time among its own: what
  // it does (SYSCALL and the like, by which it runs), that it has left its CPU (in this
  // TASK_* state; 0: it could run on), that it was woken, that it got a CPU. Ignored
  // before its first own record and after its end.
  void apply_kernel(const Record& record);
  void left_cpu(int64_t time_ns, uint32_t cpu, uint32_t task_state);
  void woken(int64_t time_ns, const Waker& waker);
  void got_cpu(int64_t time_ns, uint32_t cpu);
  // A child of vfork, which had run in this thread's place until now, needs that no more.
  // Until then left_cpu, woken and got_cpu are to be called for what the child does.
  void resumable(int64_t time_ns, const Waker& waker);
  bool in_vfork() const { return frames_.in_vfork(); }
  // Whether it has ended, or its number is another program's.
  bool is_gone() const { return is_gone_; }
  // An interrupt came upon it and woke another thread. Counted, unless it has a record of
  // its own, which came before.
  void interrupted(int64_t time_ns, uint32_t cpu);
  // Its CPU begins to serve an interrupt, or one within another; and has served the first
  // of these. Meanwhile nothing but left_cpu() ends that.
  void begin_interrupt(int64_t time_ns, uint32_t cpu);
  void end_interrupt(int64_t time_ns);
  // What the thread does at `now_ns`, without the end of that; nullopt: it has not begun,
  // or is gone. REQUIRES: no record of it came later.
  std::optional<StateInfo> state_at(int64_t now_ns) const;
  // To be called before any record of the kernel: an earlier replay knew that the thread
  // is in this state, and since when.
  void go_on(int64_t time_ns, const StateInfo& state);
  // Before that: an earlier replay knew that the thread is in the kernel's frame that
  // this record opened.
  void go_on_in_kernel(const Record& record);
  // The kernel's records show that it runs, on this CPU.
  void ran_until(int64_t time_ns, uint32_t cpu);
  // The kernel's records are not about its process, from now on: those that name it are
  // about others.
  void not_recorded(int64_t time_ns);
  // Neither the frames that the kernel's records have opened nor their ends are recorded
  // from then on.
  void leave_kernel_frames(int64_t time_ns);
  // A request to a block device, which the thread made then, or the end of one that it
  // made before.
  void block_io(const Record& record);

  // For a thread without records: it begins with its process' life, if that is known.
  void begin_life(int64_t now_ns);

  // A loss that only the collector knew of. Of the time in which it may have come, that
  // after the thread's last record is known to have no records.
  void add_residual_loss(const Record& record, const arctrace_lost_body& lost);

  // To be called once, after the last record: closes the open frames and sums up. They
  // last until the thread's end, or until `recording_end_ns` if it lived longer.
  void finish(int64_t recording_end_ns);

  // Whether the thread has a part in the filter's time range.
  bool in_report() const {
    return has_residual_loss_ || (frames_.was_in_range() && frames_.has_begun());
  }
  NodeIndex root() const { return frames_.root(); }
  // The node of the innermost shown frame.
  NodeIndex innermost() const { return frames_.top().node; }
  // Cut at the time range.
  int64_t start_ns() const { return frames_.start_ns(); }
  int64_t stop_ns() const { return frames_.stop_ns(); }
  // By how much the thread may have ended before stop_ns(); 0: that is its end, or that
  // of the recording.
  uint64_t end_within_ns() const { return end_within_ns_; }
  // The number of open frames: what STACK calls depth.
  uint64_t depth() const { return frames_.depth(); }

 private:
  // Whether it is a STACK of frames.
  static bool has_frames(const Record& record);
  // Whether it is one of those that were open before the thread's first record, which is
  // this one: its process was joined as it ran.
  static bool begins_in_frames(const Record& record);
  void begin(int64_t time_ns);
  void begin_at(const Record& record);
  void begin_in_fork(int64_t time_ns);
  void begin_program(int64_t time_ns);
  void plan_life();
  int64_t begins_at_ns() const;
  void begin_part();
  void note_missing(int64_t from_ns, int64_t to_ns, FunctionId function);
  void pass(int64_t time_ns, uint64_t left_in_gap = 0);
  void pass_life(int64_t time_ns, uint64_t left_in_gap);
  void pass_part(int64_t time_ns, uint64_t left_in_gap);
  void run_until(int64_t time_ns, uint32_t cpu = kCpuNotKnown, uint64_t left_in_gap = 0);
  void pass_until(const Record& record, uint64_t left_in_gap = 0);
  bool has_gap_until(int64_t time_ns) const;
  bool is_missing_until(int64_t from_ns, int64_t end_ns) const;
  bool is_about(const OffStretch& stretch) const;
  bool follows_kernel(int64_t time_ns);

  FunctionId resolve(uint64_t key);
  void report_signal(const Record& record);
  void enter(uint64_t key);
  void add_locks(const Record& record);
  void exit(const Record& record);
  void exit_named(const Record& record);
  void unwind(const Record& record);
  void leave_unwound(uint64_t count);
  void vfork_end(const Record& record);
  bool lacks_handlers(const Record& record) const;
  void stack(const Record& record);
  size_t frames_outside_exit(std::span<const FunctionId> frames);
  void switch_stack(uint32_t coroutine);
  void lost(const Record& record);
  void orphan(const Record& record, FunctionId function);
  void adopt(const Record& record);
  std::vector<uint64_t> keys() const;
  std::vector<uint64_t> keys_in_fork();
  void add_finding(Rule rule, const Record& record, const std::string& what);
  ReplayTotals& totals();
  void mark_begin(int64_t exec_ns);
  int64_t missing_from_ns(const Record& record) const;
  struct End {
    int64_t time_ns;
    uint64_t within_ns;  // it may be that much earlier
  };
  End end(int64_t recording_end_ns) const;

  ReplayState& state_;
  const ThreadIndex thread_;
  const ProcessIndex process_;
  const bool kernel_only_;
  bool fork_child_ = false;
  bool has_residual_loss_ = false;
  bool has_calls_ = false;    // there was a record other than STACK and LOST
  bool is_skipped_ = false;   // records were passed over: the next STACK is right
  bool broken_ = true;        // records are missing: the stack is not known until STACK
  bool is_complete_ = false;  // STACK reported all frames, and the writer keeps all
  // The same of the stacks on which the thread does not run, and how often records had
  // been missing when it left them.
  struct Known {
    bool broken, is_complete;
    uint64_t losses;
  };
  absl::flat_hash_map<uint32_t, Known> known_;  // by coroutine
  uint64_t losses_ = 0;
  bool is_gone_ = false;     // it has ended, or is another program's
  bool has_exited_ = false;  // the kernel has begun to end it
  uint32_t adopted_ = 0;
  uint64_t end_within_ns_ = 0;
  // A time in which records were lost or are missing, up to the last record.
  struct MissingTime {
    int64_t from_ns, to_ns;
    FunctionId function;
  };
  std::optional<MissingTime> missing_;
  ForkPoint parent_;      // of a fork child, until its first record
  ForkPoint fork_point_;  // of the last fork that no child has inherited yet
  // The parts of the process' life, as far as its first thread has not come to them.
  struct LifePart {
    int64_t from_ns;
    FunctionId function;  // kRootFunction: none; the process is in main
    bool is_innermost;    // it begins within the frames that are open
  };
  std::vector<LifePart> parts_;  // the next one last
  bool in_exit_ = false;         // exit handlers run
  size_t off_index_ = 0;         // of the first of state_.off that ends after now
  FrameStack frames_;
  KernelFrames kernel_;
  ThreadSchedule schedule_;
};

}  // namespace arctrace::reader
