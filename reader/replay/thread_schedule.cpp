#include "reader/replay/thread_schedule.hpp"

#include <algorithm>

namespace arctrace::reader {

ThreadSchedule::ThreadSchedule(const FrameStack& frames, ThreadIndex thread,
                               const KernelGaps* gaps, ScheduleListener* listener)
    : frames_(frames), gaps_(gaps), listener_(listener) {
  current_.thread = thread;
}

int64_t ThreadSchedule::end_of_knowledge(RunState state, uint32_t cpu) const {
  if (gaps_ == nullptr || state == RunState::kNotKnown) return INT64_MAX;
  if (is_foreign_) return frames_.now_ns();
  return gaps_->next_ns(frames_.now_ns(),
                        state == RunState::kRunning ? cpu : kCpuNotKnown);
}

void ThreadSchedule::set_foreign() {
  if (gaps_ == nullptr) return;
  is_foreign_ = true;
  if (state() != RunState::kNotKnown) known_until_ns_ = frames_.now_ns();
}

void ThreadSchedule::go_on(const StateInfo& state) {
  begin(state.state, state.cpu);
  if (state.state != current_.state) return;
  current_.preempted = state.preempted;
  current_.task_state = state.task_state;
  current_.start_ns = std::min(state.start_ns, frames_.now_ns());
}

// One that ran before goes on: a record says so again, or on which CPU it is.
void ThreadSchedule::run(uint32_t cpu) {
  if (state() != RunState::kRunning) {
    change(RunState::kRunning, cpu);
    return;
  }
  if (cpu == kCpuNotKnown) return;
  current_.cpu = cpu;
  known_until_ns_ = end_of_knowledge(RunState::kRunning, cpu);
}

void ThreadSchedule::leave(uint32_t task_state) {
  const bool is_known =
      change(task_state == 0 ? RunState::kReady : RunState::kBlocked, kCpuNotKnown);
  if (!is_known) return;
  current_.preempted = task_state == 0;
  current_.task_state = task_state;
}

void ThreadSchedule::wake(const Waker& waker) {
  if (state() == RunState::kBlocked) current_.waker = waker;
  change(RunState::kReady, kCpuNotKnown);
}

// It stays on its CPU, so that its state is known for as long as if it ran.
void ThreadSchedule::interrupt(uint32_t cpu) {
  if (is_interrupted() || !change(RunState::kRunning, cpu)) return;
  current_.state = RunState::kReady;
  current_.preempted = current_.interrupted = true;
}

void ThreadSchedule::lose() {
  if (state() == RunState::kNotKnown) return;
  end();
  begin(RunState::kNotKnown, kCpuNotKnown);
}

void ThreadSchedule::finish() { end(); }

// False: the state is not known for longer than now. A stretch that is not known goes on
// then.
bool ThreadSchedule::change(RunState state, uint32_t cpu) {
  if (end_of_knowledge(state, cpu) <= frames_.now_ns()) {
    lose();
    return false;
  }
  end();
  begin(state, cpu);
  return true;
}

void ThreadSchedule::end() {
  if (listener_ == nullptr) return;
  current_.start_ns = frames_.clip(current_.start_ns);
  current_.stop_ns = frames_.clip(frames_.now_ns());
  // After the range the frames of the waker are not known.
  if (current_.stop_ns < frames_.now_ns()) current_.waker.node = kNoNode;
  if (current_.stop_ns > current_.start_ns) listener_->state_ended(current_);
}

void ThreadSchedule::begin(RunState state, uint32_t cpu) {
  const int64_t known_ns = end_of_knowledge(state, cpu);
  if (known_ns <= frames_.now_ns()) state = RunState::kNotKnown;
  const ThreadIndex thread = current_.thread;
  current_ = {};
  current_.thread = thread;
  current_.state = state;
  current_.cpu = state == RunState::kRunning ? cpu : kCpuNotKnown;
  current_.start_ns = frames_.now_ns();
  current_.node = frames_.top().node;
  known_until_ns_ = state == RunState::kNotKnown ? INT64_MAX : known_ns;
}

}  // namespace arctrace::reader
