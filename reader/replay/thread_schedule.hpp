// One thread's states over time: when it ran, when it could have run, and when it was
// blocked.
#pragma once

#include "reader/replay/frame_stack.hpp"
#include "reader/replay/schedule_listener.hpp"

namespace arctrace::reader {

// Every change happens at the present time of the frames.
class ThreadSchedule {
 public:
  // Both must outlive this object. `listener` may be nullptr.
  ThreadSchedule(const FrameStack& frames, ThreadIndex thread,
                 ScheduleListener* listener);

  RunState state() const { return current_.state; }
  // The stretch that lasts, without its end.
  const StateInfo& current() const { return current_; }

  // The thread begins, and runs.
  void start() { begin(RunState::kRunning); }
  // The thread has been in this state all the time: another replay knew of its beginning.
  void go_on(const StateInfo& state);
  // The thread runs from now on.
  void run();
  // The thread leaves its CPU, in this TASK_* state of the kernel's; 0: it could run on.
  void leave(uint32_t task_state);
  // The thread could run from now on. REQUIRES: it is blocked.
  void wake(const Waker& waker);

  // Reports the last stretch.
  void finish();

 private:
  void end();
  void begin(RunState state);

  const FrameStack& frames_;
  ScheduleListener* listener_;
  StateInfo current_;
};

}  // namespace arctrace::reader
