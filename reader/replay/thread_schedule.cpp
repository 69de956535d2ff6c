#include "reader/replay/thread_schedule.hpp"

#include <algorithm>

namespace arctrace::reader {

ThreadSchedule::ThreadSchedule(const FrameStack& frames, ThreadIndex thread,
                               ScheduleListener* listener)
    : frames_(frames), listener_(listener) {
  current_.thread = thread;
}

void ThreadSchedule::run() {
  end();
  begin(RunState::kRunning);
}

void ThreadSchedule::go_on(const StateInfo& state) {
  begin(state.state);
  current_.preempted = state.preempted;
  current_.task_state = state.task_state;
  current_.start_ns = std::min(state.start_ns, current_.start_ns);
}

void ThreadSchedule::leave(uint32_t task_state) {
  end();
  begin(task_state == 0 ? RunState::kReady : RunState::kBlocked);
  current_.preempted = task_state == 0;
  current_.task_state = task_state;
}

void ThreadSchedule::wake(const Waker& waker) {
  current_.waker = waker;
  end();
  begin(RunState::kReady);
}

void ThreadSchedule::finish() { end(); }

void ThreadSchedule::end() {
  if (listener_ == nullptr) return;
  current_.start_ns = frames_.clip(current_.start_ns);
  current_.stop_ns = frames_.clip(frames_.now_ns());
  // After the range the frames of the waker are not known.
  if (current_.stop_ns < frames_.now_ns()) current_.waker.node = kNoNode;
  if (current_.stop_ns > current_.start_ns) listener_->state_ended(current_);
}

void ThreadSchedule::begin(RunState state) {
  const ThreadIndex thread = current_.thread;
  current_ = {};
  current_.thread = thread;
  current_.state = state;
  current_.start_ns = frames_.now_ns();
  current_.node = frames_.top().node;
}

}  // namespace arctrace::reader
