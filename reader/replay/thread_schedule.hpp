// One thread's states over time: whether it ran, could have run, or was blocked.
#pragma once

#include "reader/replay/frame_stack.hpp"
#include "reader/replay/schedule_listener.hpp"

namespace arctrace::reader {

// Every change is at the frames' present time.
class ThreadSchedule {
 public:
  // Both must outlive this object. `listener` may be nullptr.
  ThreadSchedule(const FrameStack& frames, ThreadIndex thread,
                 ScheduleListener* listener);

  RunState state() const { return current_.state; }

  // The thread has begun, and runs.
  void start() { begin(RunState::kRunning); }
  // It runs again from now on.
  void run();
  // It leaves its CPU in this state of the kernel's; 0: it could go on.
  void leave(uint32_t task_state);
  // REQUIRES: it is blocked.
  void wake(const Waker& waker);

  // Ends the last stretch.
  void finish();

 private:
  void end();
  void begin(RunState state);

  const FrameStack& frames_;
  ScheduleListener* listener_;
  StateInfo current_;
};

}  // namespace arctrace::reader
