// One thread in the replay: its stack, the frames that the kernel's records make on it,
// and when it ran.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reader/replay/frame_stack.hpp"
#include "reader/replay/functions.hpp"
#include "reader/replay/listener.hpp"
#include "reader/trace/recorded_times.hpp"

namespace arctrace::reader {

// The frames that the kernel's records make above a thread's own (SPEC.md READ-6). A
// system call is a frame from SYSCALL to SYSCALL_END, a wait for a lock is one from its
// first CONTENTION to CONTENTION_END; faults and signals are calls that take no time.
//
// Ends may be missing: when a thread calls the kernel, gets a signal, or writes a record
// itself, it has left all of the kernel's frames. An end that matches no frame is
// ignored.
class KernelFrames {
 public:
  // Both must outlive this object.
  KernelFrames(FrameStack& frames, ReplayState& state);

  // Applies a record about the running thread, at the frames' present time. A frame that
  // it opens has these flags (enum FrameFlag).
  void apply(const Record& record, uint16_t flags = 0);

  bool has_open() const { return !open_.empty(); }

  // Ends all frames: the thread is no longer in the kernel. `lost`: their ends were lost.
  void leave_all(bool lost);

 private:
  struct Open {
    bool is_syscall;
    uint64_t lock;  // the lock of a wait
  };

  void end_syscall(int64_t result);
  void end_contention(uint64_t lock);
  // Makes the frame the innermost one; false: it is not open.
  bool find_end(bool is_syscall, uint64_t lock);
  void leave(size_t count, bool lost);
  void count(FunctionId function);

  FrameStack& frames_;
  ReplayState& state_;
  std::vector<Open> open_;  // the kernel's frames on frames_, innermost last
};

// One thread's states over time: when it ran, when it could have run, when it was
// blocked, and when the kernel's records that would tell are missing. Every change
// happens at the present time of the frames.
//
// This class decides from when to when a state is known (SPEC.md READ-9): from the record
// that tells it to the thread's next one, or to the next gap in the kernel's records that
// may have lost that one. If the thread runs, these are the gaps of its CPU, because a
// record of this CPU would tell that it leaves it; another thread may be woken, and get a
// CPU, on any of them.
class ThreadSchedule {
 public:
  // `frames` and `gaps` must outlive this object; so must `listener`, which may be
  // nullptr. `gaps` is nullptr if there are no records of the kernel: then a thread
  // runs as long as it is there.
  ThreadSchedule(const FrameStack& frames, ThreadIndex thread, const KernelGaps* gaps,
                 ScheduleListener* listener);

  RunState state() const { return current_.state; }
  // The present stretch, without its end.
  const StateInfo& current() const { return current_; }
  // The time up to which the state is known, if no record of the thread comes before. At
  // that time lose() is to be called.
  int64_t known_until_ns() const { return known_until_ns_; }

  // Begins the thread: it runs, or, with the kernel's records, it is in a state that
  // these did not tell.
  void start() { begin(RunState::kRunning, kCpuNotKnown); }
  void start_not_known() {
    begin(gaps_ == nullptr ? RunState::kRunning : RunState::kNotKnown, kCpuNotKnown);
  }
  // Says that the thread is of a process that the kernel's records are not about: each
  // state is known only at its record.
  void set_foreign();
  // Says that the thread has been in this state all the time: another replay knew its
  // beginning.
  void go_on(const StateInfo& state);
  // The thread runs from now on, on this CPU (kCpuNotKnown: not known).
  void run(uint32_t cpu);
  // The thread leaves its CPU, in this TASK_* state of the kernel's; 0: it could run on.
  void leave(uint32_t task_state);
  // The thread could run from now on. REQUIRES: it is not known to be ready or to run.
  void wake(const Waker& waker);
  // The CPU of the running thread serves an interrupt from now on; resume(): it has
  // served it, and the thread runs again.
  void interrupt(uint32_t cpu);
  void resume() { change(RunState::kRunning, current_.cpu); }
  bool is_interrupted() const { return current_.interrupted; }
  // The state is not known from now on.
  void lose();

  // Gives the last stretch to the listener.
  void finish();

 private:
  int64_t end_of_knowledge(RunState state, uint32_t cpu) const;
  bool change(RunState state, uint32_t cpu);
  void end();
  void begin(RunState state, uint32_t cpu);

  const FrameStack& frames_;
  const KernelGaps* gaps_;
  ScheduleListener* listener_;
  StateInfo current_;
  bool is_foreign_ = false;
  int64_t known_until_ns_ = INT64_MAX;
};

// One thread's call stack, rebuilt from its own records and the kernel's about it
// (SPEC.md READ-3, READ-6 and READ-7). Records may be missing. So an EXIT_NAMED whose key
// is not the innermost frame's leaves all frames up to the one that has it, unless the
// writer has listed all its frames: then it has searched them itself. On an empty stack
// an EXIT_NAMED is of a function that was entered before tracing began: its frame is put
// around all that was recorded so far. An exit that matches no frame changes nothing and
// is counted. After a loss, STACK tells the stack; without a loss it must agree with the
// known stack.
//
// A thread may have a stack for each of its coroutines (READ-10): all comments on its
// frames hold for each.
//
// A thread that writes a record runs, and is not in the kernel; if it seems to be, the
// end of the kernel's frame was lost.
class ThreadStack {
 public:
  // The frames that were open when the thread began to fork.
  struct ForkPoint {
    int64_t time_ns = INT64_MIN;  // INT64_MIN: there is none; INT64_MAX: not known
    std::vector<uint64_t> keys;   // outermost first
    bool is_guess = false;        // the time of the fork is not known
  };

  // `state` must outlive this object. A thread that only the kernel's records name has
  // only the kernel's frames.
  ThreadStack(ReplayState& state, ThreadIndex thread);

  // Says that no record of the kernel's can be about the thread, so that its state is
  // known only at its own records. To be called before the first record.
  void not_named_by_kernel() { schedule_.set_foreign(); }

  // Makes this the thread of a fork child, which begins in its parent's frames. To be
  // called before the first record. If the thread's own first STACK has frames, these are
  // the stack that fork copied.
  void inherit(ForkPoint parent) { parent_ = std::move(parent); }
  // Returns the place at which this thread last called fork(), once; without one, its
  // present place.
  ForkPoint take_fork_point();
  // Returns the open frames at the time of a fork that is known and whose child has not
  // begun yet.
  ForkPoint fork_point_at(int64_t time_ns);
  int64_t fork_ns() const { return fork_point_.time_ns; }

  // Applies the thread's next record, in the order in which it wrote them. Definitions
  // and records of the kernel writer are not part of the stack and are ignored.
  void apply(const Record& record);

  // These apply the kernel's records about the thread, in order of time among its own:
  // what it does (SYSCALL and the like, by which it runs), that it has left its CPU (in
  // this TASK_* state; 0: it could run on), that it was woken, that it got a CPU. They
  // are ignored before its first own record and after its end.
  void apply_kernel(const Record& record);
  void left_cpu(int64_t time_ns, uint32_t cpu, uint32_t task_state);
  void woken(int64_t time_ns, const Waker& waker);
  void got_cpu(int64_t time_ns, uint32_t cpu);
  // Ends the time in which a child of vfork runs in this thread's place. Until then
  // left_cpu, woken and got_cpu are to be called for what the child does.
  void resumable(int64_t time_ns, const Waker& waker);
  bool in_vfork() const { return frames_.in_vfork(); }
  // Whether the thread has ended, or its number is another program's.
  bool is_gone() const { return is_gone_; }
  // An interrupt came upon the thread and woke another thread. It is counted, unless it
  // has a record of its own, which came before.
  void interrupted(int64_t time_ns, uint32_t cpu);
  // The thread's CPU begins to serve an interrupt, or one within another;
  // end_interrupt(): it has served the outermost one. Meanwhile nothing but left_cpu()
  // ends that.
  void begin_interrupt(int64_t time_ns, uint32_t cpu);
  void end_interrupt(int64_t time_ns);
  // Returns what the thread does at `now_ns`, without the end of that; nullopt: it has
  // not begun, or is gone. REQUIRES: no record of it came later.
  std::optional<StateInfo> state_at(int64_t now_ns) const;
  // To be called before any record of the kernel: an earlier replay knew that the thread
  // is in this state, and since when.
  void go_on(int64_t time_ns, const StateInfo& state);
  // To be called before go_on(): an earlier replay knew that the thread is in the
  // kernel's frame that this record opened.
  void go_on_in_kernel(const Record& record);
  // The kernel's records show that the thread runs, on this CPU.
  void ran_until(int64_t time_ns, uint32_t cpu);
  // From now on the kernel's records are not about the thread's process: those with its
  // number are about others.
  void not_recorded(int64_t time_ns);
  // From then on neither the frames of the kernel's that are open nor their ends are
  // recorded.
  void leave_kernel_frames(int64_t time_ns);
  // A request to a block device that the thread made then, or the end of one that it made
  // before.
  void block_io(const Record& record);

  // Begins a thread without records with its process' lifetime, if that is known.
  void begin_life(int64_t now_ns);
  // A thread of the same process creates this one, which from then on could run. Changes
  // nothing if the thread was there before.
  void created(int64_t time_ns);

  // Adds a loss that only the collector knew. Of the time in which it may have come, only
  // the part after the thread's last record is known to have no records.
  void add_residual_loss(const Record& record, const arctrace_lost_body& lost);

  // To be called once, after the last record: closes the open frames and sums up. The
  // frames last until the thread's end, or until `recording_end_ns` if it lived longer.
  void finish(int64_t recording_end_ns);

  // Whether the thread has a part in the filter's time range.
  bool in_report() const {
    return has_residual_loss_ || (frames_.was_in_range() && frames_.has_begun());
  }
  NodeIndex root() const { return frames_.root(); }
  // The node of the innermost shown frame.
  NodeIndex innermost() const { return frames_.top().node; }
  // The begin and end, cut at the time range.
  int64_t start_ns() const { return frames_.start_ns(); }
  int64_t stop_ns() const { return frames_.stop_ns(); }
  // How much before stop_ns() the thread may have ended; 0: that is its end, or the
  // recording's.
  uint64_t end_within_ns() const { return end_within_ns_; }
  // The number of open frames, which STACK calls depth.
  uint64_t depth() const { return frames_.depth(); }

 private:
  // Whether the record is a STACK with frames.
  static bool has_frames(const Record& record);
  // Whether the record is a STACK of the frames that were open before the thread's first
  // record, which it is: the process was joined while it ran.
  static bool begins_in_frames(const Record& record);
  // Whether the record is such a STACK, by the collector, of a thread that it saw wait in
  // these frames from then on to the recording's end.
  static bool waits_in_frames(const Record& record);
  void begin(int64_t time_ns);
  void begin_at(const Record& record);
  void begin_in_fork(int64_t time_ns);
  void begin_program(int64_t time_ns);
  void plan_life();
  int64_t begins_at_ns() const;
  std::vector<TracerStart> starts_of_tracer(const Process& process,
                                            int64_t begin_ns) const;
  void begin_part();
  void note_missing(int64_t from_ns, int64_t to_ns, FunctionId function);
  void pass(int64_t time_ns, uint64_t exits_in_gap = 0);
  void pass_life(int64_t time_ns, uint64_t exits_in_gap);
  void pass_part(int64_t time_ns, uint64_t exits_in_gap);
  void run_until(int64_t time_ns, uint32_t cpu = kCpuNotKnown, uint64_t exits_in_gap = 0);
  void pass_until(const Record& record, uint64_t exits_in_gap = 0);
  bool has_gap_until(int64_t time_ns) const;
  bool is_missing_until(int64_t from_ns, int64_t end_ns) const;
  bool is_about(const OffStretch& stretch) const;
  bool follows_kernel(int64_t time_ns);

  FunctionId resolve(uint64_t key);
  void report_signal(const Record& record);
  void die_of(const Record& record);
  void go_on_living();
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
  void mark_begin(int64_t exec_ns, int64_t part_end_ns);
  int64_t missing_from_ns(const Record& record) const;
  struct End {
    int64_t time_ns;
    uint64_t within_ns;  // it may have ended that much earlier
  };
  End end(int64_t recording_end_ns) const;

  ReplayState& state_;
  const ThreadIndex thread_;
  const ProcessIndex process_;
  const bool kernel_only_;
  bool fork_child_ = false;
  int64_t created_ns_ = INT64_MAX;  // by the kernel's records; INT64_MAX: not known
  bool has_residual_loss_ = false;
  bool has_calls_ = false;    // there was a record other than STACK and LOST
  bool is_skipped_ = false;   // records were skipped: the next STACK is right
  bool broken_ = true;        // records are missing: no stack is known until STACK
  bool is_complete_ = false;  // STACK listed all frames, and the writer keeps all
  // The same facts of the stacks on which the thread does not run, and how often records
  // had been missing when it left them.
  struct Known {
    bool broken, is_complete;
    uint64_t losses;
  };
  absl::flat_hash_map<uint32_t, Known> known_;  // by coroutine
  uint64_t losses_ = 0;
  bool is_gone_ = false;     // the thread has ended, or is another program's
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
  // The parts of the process' lifetime that its first thread has not reached.
  struct LifePart {
    int64_t from_ns;
    FunctionId function;  // kRootFunction: none; the process is in main
    bool is_innermost;    // it begins within the frames that are open
    bool is_again;        // it goes on after another part
  };
  std::vector<LifePart> parts_;  // the next one last
  bool in_exit_ = false;         // exit handlers run
  bool is_dying_ = false;        // of a signal: in [exit], which die_of() has begun
  size_t off_index_ = 0;         // of the first of state_.off that ends after now
  FrameStack frames_;
  KernelFrames kernel_;
  ThreadSchedule schedule_;
};

}  // namespace arctrace::reader
