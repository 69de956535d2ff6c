// How a thread's stack begins, forks and ends: with the parts of its process' lifetime,
// in the frames of the thread that forked it, and with the frames that are open at its
// end; and its states over time.
#include <algorithm>
#include <utility>

#include "reader/replay/thread_stack.hpp"
#include "src/base/untrusted_bytes.hpp"

namespace arctrace::reader {
namespace {

constexpr uint32_t kTaskRunning = 0;  // the kernel's

}  // namespace

// ---- The process' lifetime -------------------------------------------------------

// Returns when the thread, the first one of its process, only started the tracer, in
// order of time: among the constructors, and as it joined. If that cannot be, nothing.
std::vector<TracerStart> ThreadStack::starts_of_tracer(const Process& process,
                                                       int64_t begin_ns) const {
  const int64_t start_ns = state_.definitions.threads()[thread_].start_ns;
  const std::vector<TracerStart>& starts = process.tracer_starts;
  if (starts.empty() || starts.front().from_ns > start_ns ||
      starts.front().until_ns < start_ns) {
    return {};
  }
  int64_t earliest_ns = begin_ns;
  for (const TracerStart& start : starts) {
    if (start.from_ns < earliest_ns || start.until_ns > process.main_ns) return {};
    earliest_ns = start.until_ns;
  }
  return starts;
}

// Plans the parts of a program's lifetime: its first thread begins with its exec, and is
// in the loader until the process joins, and in constructors until main is called. The
// start of the tracer is a part of its own, also that of a later thread.
void ThreadStack::plan_life() {
  const Process* process = state_.definitions.process(process_);
  const Thread& thread = state_.definitions.threads()[thread_];
  if (process == nullptr) return;
  const bool is_first = thread.tid == process->pid;
  // Exit handlers run in the thread that called exit().
  const bool exits =
      process->end_writer == 0 ? is_first : process->end_writer == thread.writer;
  if (process->exit_ns != INT64_MAX && exits) {
    parts_.push_back({process->exit_ns, state_.made_up.exit(), true, false});
  }
  if (!is_first && thread.tracer_start.has_value() &&
      thread.tracer_start->from_ns <= thread.start_ns &&
      thread.start_ns <= thread.tracer_start->until_ns) {
    parts_.push_back({thread.tracer_start->until_ns, kRootFunction, false, false});
    parts_.push_back(
        {created_ns_ == INT64_MAX ? thread.start_ns : thread.tracer_start->from_ns,
         state_.made_up.own_work(), false, false});
  }
  if (!is_first || process->origin == ARCTRACE_ORIGIN_FORK) return;
  const bool has_main = process->main_ns != INT64_MAX;
  if (has_main) parts_.push_back({process->main_ns, kRootFunction, false, false});
  const int64_t begin_ns = state_.definitions.life_begin_ns(thread_);
  if (begin_ns == INT64_MIN && !has_main) return;
  const FunctionId constructors =
      has_main ? state_.made_up.constructors() : kRootFunction;
  const std::vector<TracerStart> starts = starts_of_tracer(*process, begin_ns);
  if (starts.empty()) parts_.push_back({thread.start_ns, constructors, false, false});
  for (size_t i = starts.size(); i-- > 0;) {
    parts_.push_back({starts[i].until_ns, constructors, false, i != 0});
    parts_.push_back({starts[i].from_ns, state_.made_up.own_work(), false, i != 0});
  }
  if (begin_ns != INT64_MIN) {
    parts_.push_back({std::min(begin_ns, thread.start_ns),
                      process->exec_ns != INT64_MIN ? state_.made_up.loader()
                                                    : state_.made_up.before(),
                      false, false});
  }
}

// Returns when the thread begins. A later thread, or one of a program that joined while
// it ran, exists from its start on, though it may write its first record late, or none.
int64_t ThreadStack::begins_at_ns() const {
  const int64_t begin = state_.definitions.life_begin_ns(thread_);
  if (begin != INT64_MIN) return begin;
  const Process* process = state_.definitions.process(process_);
  const Thread& thread = state_.definitions.threads()[thread_];
  if (process == nullptr) return INT64_MAX;
  if (created_ns_ < thread.start_ns) return created_ns_;
  return process->pid != thread.tid || process->ran_before ? thread.start_ns : INT64_MAX;
}

void ThreadStack::begin_life(int64_t now_ns) {
  frames_.set_record_time(now_ns);
  plan_life();
  if (state_.definitions.life_begin_ns(thread_) == INT64_MIN) {
    begin(begins_at_ns());
    const Process* process = state_.definitions.process(process_);
    // The thread may wait, and another thread may have made the process join.
    if (process != nullptr && process->ran_before) schedule_.start_not_known();
  } else if (fork_child_) {
    begin_in_fork(begins_at_ns());
  } else if (parts_.size() > 1) {
    begin_program(parts_.back().from_ns);
  }
  // Records of the kernel may come before the thread's own first one.
  const Thread& thread = state_.definitions.threads()[thread_];
  note_missing(thread.start_ns, thread.overwritten_until_ns,
               state_.made_up.overwritten());
}

void ThreadStack::created(int64_t time_ns) {
  if (frames_.has_begun() || fork_child_ || !state_.has_dispatches) return;
  if (kernel_only_) {
    begin(time_ns);
  } else {
    if (state_.definitions.life_begin_ns(thread_) != INT64_MIN) return;
    created_ns_ = time_ns;
    if (begins_at_ns() != time_ns) return;
    begin_life(time_ns);
  }
  schedule_.leave(kTaskRunning);
}

// If the time of the exec is not known, the program ran before, and its state is not
// known.
void ThreadStack::begin_program(int64_t time_ns) {
  begin(time_ns);
  const Process* process = state_.definitions.process(process_);
  if (process == nullptr || process->exec_ns == INT64_MIN) schedule_.start_not_known();
}

// The thread begins in the parent's frames, as far as they are known. It runs when it
// gets a CPU.
void ThreadStack::begin_in_fork(int64_t time_ns) {
  begin(time_ns);
  std::vector<FrameStack::KeyAndFunction> frames;
  for (const uint64_t key : parent_.keys) {
    frames.push_back({key, key == 0 ? kUnknownFunction : resolve(key)});
  }
  constexpr uint16_t kGuessed = uint16_t{kFrameInherited} | uint16_t{kFrameGuessed};
  frames_.inherit(frames, parent_.is_guess ? kGuessed : uint16_t{kFrameInherited});
  totals().inherited += frames.size();
  if (parent_.is_guess) totals().guessed += frames.size();
  if (state_.has_dispatches) schedule_.leave(kTaskRunning);
}

// Begins the next part. Only the last part may begin while frames are open, and is then
// within them.
void ThreadStack::begin_part() {
  const LifePart part = parts_.back();
  parts_.pop_back();
  if (frames_.in_part()) frames_.leave_part();
  if (part.function == kRootFunction) return;
  if (!part.is_innermost && frames_.depth() != 0) return;
  in_exit_ |= part.is_innermost;
  frames_.push_part(part.function, part.is_again);
  if (part.function == state_.made_up.before()) ++frames_.mark_top().at_most;
  if (part.function == state_.made_up.loader()) {
    mark_begin(part.from_ns, parts_.empty() ? INT64_MAX : parts_.back().from_ns);
  }
}

// Marks the part of the range in which the program may not have been executed yet, which
// is within the first part of its lifetime.
void ThreadStack::mark_begin(int64_t exec_ns, int64_t part_end_ns) {
  const Process* process = state_.definitions.process(process_);
  if (process->exec_within_ns == 0) return;
  const auto last_ns = std::min(
      static_cast<int64_t>(static_cast<uint64_t>(exec_ns) + process->exec_within_ns),
      part_end_ns);
  const uint64_t within_ns = static_cast<uint64_t>(frames_.clip(last_ns)) -
                             static_cast<uint64_t>(frames_.clip(exec_ns));
  if (within_ns != 0) frames_.mark_top().begin_within_ns += within_ns;
}

// Returns from when on records are missing before `record`, the first record of a thread
// that exists, as far as is known. INT64_MAX: none are missing.
int64_t ThreadStack::missing_from_ns(const Record& record) const {
  const bool is_overwritten =
      state_.is_overwritten && record.after_gap && !begins_in_frames(record) &&
      (record.compact || has_frames(record) || parent_.time_ns != INT64_MIN);
  if (is_overwritten) return state_.definitions.begin_ns(thread_);
  if (record.type != ARCTRACE_TYPE_LOST || state_.ticks == nullptr) return INT64_MAX;
  const auto lost = load_part_untrusted<arctrace_lost_body>(record.body);
  if ((lost.flags & ARCTRACE_LOST_INHERITED) != 0 || lost.since_ticks == 0) {
    return INT64_MAX;
  }
  return std::max(state_.ticks->to_ns(lost.since_ticks),
                  state_.definitions.threads()[thread_].start_ns);
}

// Begins the thread with its first record; that of a fork child begins with the fork.
void ThreadStack::begin_at(const Record& record) {
  plan_life();
  if (parts_.size() > 1 && parts_.back().from_ns < record.time_ns) {
    begin_program(parts_.back().from_ns);
    return;
  }
  // In blocks of several writers every STACK might follow a gap. But no record can have
  // come before the one with which the thread began.
  const bool is_first = !record.after_gap ||
                        record.time_ns <= state_.definitions.threads()[thread_].start_ns;
  if (parent_.time_ns == INT64_MIN || has_frames(record) || !is_first) {
    int64_t from_ns = std::min(missing_from_ns(record), record.time_ns);
    const Process* process = state_.definitions.process(process_);
    const bool was_there =
        state_.has_dispatches && process != nullptr && process->ran_before;
    if (was_there) from_ns = std::min(from_ns, begins_at_ns());
    begin(from_ns);
    // The kernel's records tell the thread's state only from now on.
    if (from_ns < begins_at_ns() || was_there || begins_in_frames(record)) {
      schedule_.start_not_known();
    }
    return;
  }
  begin_in_fork(std::min(parent_.time_ns, record.time_ns));
}

// ---- Fork ----------------------------------------------------------------------

// Returns the keys without the kernel's frames, which are not the child's.
std::vector<uint64_t> ThreadStack::keys() const {
  std::vector<uint64_t> keys;
  const std::span<const FrameStack::Frame> frames = frames_.frames();
  for (size_t i = 1; i + frames_.kernel_frames() < frames.size(); ++i) {
    if (FrameStack::is_part(frames[i])) continue;
    keys.push_back(frames[i].function == kUnknownFunction ? 0 : frames[i].key);
  }
  return keys;
}

// Returns the keys of the frames that are open if the thread is about to fork: a function
// that does not fork has been left, and its exit was lost, or comes later.
std::vector<uint64_t> ThreadStack::keys_in_fork() {
  std::vector<uint64_t> open = keys();
  while (!open.empty() && open.back() != 0 &&
         state_.fork_functions.is_other_of_libc(resolve(open.back()))) {
    open.pop_back();
  }
  return open;
}

ThreadStack::ForkPoint ThreadStack::take_fork_point() {
  if (fork_point_.time_ns == INT64_MIN) return {INT64_MAX, keys_in_fork()};
  return std::exchange(fork_point_, {});
}

ThreadStack::ForkPoint ThreadStack::fork_point_at(int64_t time_ns) {
  fork_point_ = {};
  return {time_ns, keys_in_fork()};
}

// ---- The end -------------------------------------------------------------------

// Returns when the thread ended, as far as records tell it. The collector notices an end
// that the process did not record, such as by SIGKILL, up to a pass late. A number that
// only the kernel's records know may have had several threads.
ThreadStack::End ThreadStack::end(int64_t recording_end_ns) const {
  const Thread& thread = state_.definitions.threads()[thread_];
  const int64_t now_ns = frames_.now_ns();
  if (is_gone_ || has_exited_ || thread.ended_unseen) return {now_ns, 0};
  const int64_t seen_ns = state_.definitions.life_end_ns(thread_);
  const int64_t end_ns = std::min(std::max(recording_end_ns, now_ns), seen_ns);
  const int64_t alive_ns = std::max(now_ns, thread.alive_ns);
  // Of the process' threads, the one that ended it lived until then, and so did most
  // likely the threads that were in functions. The others may have ended before, so
  // shortly that the collector had not noticed.
  const Process* process = state_.definitions.process(process_);
  const bool ends_with_process =
      process != nullptr && process->end_how != ARCTRACE_END_NONE &&
      process->end_ns == end_ns &&
      (thread.writer == process->end_writer || frames_.depth() != 0);
  const bool is_seen = seen_ns == end_ns;
  if (!is_seen || ends_with_process || alive_ns >= end_ns) return {end_ns, 0};
  return {end_ns, static_cast<uint64_t>(end_ns) - static_cast<uint64_t>(alive_ns)};
}

void ThreadStack::finish(int64_t recording_end_ns) {
  if (frames_.has_begun()) {
    frames_.set_record_time(INT64_MIN);
    const End last = end(recording_end_ns);
    // The uncertain time is cut at the time range.
    const auto first_ns =
        static_cast<int64_t>(static_cast<uint64_t>(last.time_ns) - last.within_ns);
    // Exit handlers that ran while nothing was recorded are not shown: their frames are
    // not known.
    if (!parts_.empty() && parts_.back().is_innermost &&
        is_missing_until(parts_.back().from_ns, last.time_ns)) {
      parts_.clear();
    }
    end_within_ns_ = static_cast<uint64_t>(frames_.clip(last.time_ns)) -
                     static_cast<uint64_t>(frames_.clip(first_ns));
    pass(first_ns);
    const NodeIndex innermost = frames_.top().node;
    const uint64_t known_ns = state_.tree[innermost].self_ns;
    pass(last.time_ns);
    const uint64_t late_ns = state_.tree[innermost].self_ns - known_ns;
    if (last.within_ns != 0 && late_ns != 0) {
      state_.tree.mark(innermost).end_within_ns += late_ns;
    }
  }
  totals().open += frames_.depth() + frames_.kernel_frames() + frames_.inherited() +
                   frames_.suspended_frames();
  frames_.finish();
  if (frames_.has_begun()) schedule_.finish();
}

// ---- The states over time --------------------------------------------------------

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

// If the thread runs already, it goes on: a record repeats that, or tells on which CPU it
// is.
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

// The thread stays on its CPU, so its state is known for as long as if it ran.
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

// Returns false if the state is not known for longer than now. Then a stretch that is not
// known goes on.
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
