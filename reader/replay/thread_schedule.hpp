// One thread's states over time: when it ran, when it could have run, when it was
// blocked, and when the kernel's records that would tell are missing.
#pragma once

#include "reader/replay/frame_stack.hpp"
#include "reader/replay/schedule_listener.hpp"
#include "reader/trace/kernel_gaps.hpp"

namespace arctrace::reader {

// Every change happens at the present time of the frames.
//
// This is where it is decided from when to when a state is known (SPEC.md READ-9): from
// the record that tells it to the thread's next one, or to the next gap in the kernel's
// records that may have had that one. Of a thread that runs these are the gaps of its
// CPU, since it leaves that by a record of this CPU; another one may be woken, and get a
// CPU, on any of them.
class ThreadSchedule {
 public:
  // `frames` and `gaps` must outlive this object; so must `listener`, which may be
  // nullptr. `gaps` is nullptr if there are no records of the kernel: then a thread
  // runs as long as it is there.
  ThreadSchedule(const FrameStack& frames, ThreadIndex thread, const KernelGaps* gaps,
                 ScheduleListener* listener);

  RunState state() const { return current_.state; }
  // The stretch that lasts, without its end.
  const StateInfo& current() const { return current_; }
  // Up to then the state is known, if no record of the thread comes before. What follows
  // is not: at that time lose() is to be called.
  int64_t known_until_ns() const { return known_until_ns_; }

  // The thread begins, and runs; or, with the kernel's records, in a state that these did
  // not tell.
  void start() { begin(RunState::kRunning, kCpuNotKnown); }
  void start_not_known() {
    begin(gaps_ == nullptr ? RunState::kRunning : RunState::kNotKnown, kCpuNotKnown);
  }
  // Nothing more is known of the thread for longer than a moment: it is of a process that
  // the kernel's records are not about.
  void set_foreign();
  // The thread has been in this state all the time: another replay knew of its beginning.
  void go_on(const StateInfo& state);
  // The thread runs from now on, on this CPU (kCpuNotKnown: not known).
  void run(uint32_t cpu);
  // The thread leaves its CPU, in this TASK_* state of the kernel's; 0: it could run on.
  void leave(uint32_t task_state);
  // The thread could run from now on. REQUIRES: it is not known to be ready or to run.
  void wake(const Waker& waker);
  // The CPU of the thread, which runs, serves an interrupt from now on; and no more: the
  // thread runs again.
  void interrupt(uint32_t cpu);
  void resume() { change(RunState::kRunning, current_.cpu); }
  bool is_interrupted() const { return current_.interrupted; }
  // The state is not known from now on.
  void lose();

  // Reports the last stretch.
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

}  // namespace arctrace::reader
