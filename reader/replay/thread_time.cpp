// How a thread's time passes: in its frames, and where records are missing in none.
#include <algorithm>
#include <utility>

#include "reader/replay/thread_stack.hpp"
#include "src/protocol/record_filter.hpp"

namespace arctrace::reader {

void ThreadStack::note_missing(int64_t from_ns, int64_t to_ns, FunctionId function) {
  if (from_ns >= to_ns) return;
  // An earlier stretch may have passed while the thread was in the kernel.
  if (missing_.has_value() && missing_->to_ns > frames_.now_ns()) {
    from_ns = std::min(from_ns, missing_->from_ns);
  }
  missing_ = MissingTime{from_ns, to_ns, function};
}

// Whether the stretch is about this thread.
bool ThreadStack::is_about(const OffStretch& stretch) const {
  if (stretch.filter.empty()) return true;
  const Process* process = state_.definitions.process_of(thread_);
  const ThreadFilter threads(stretch.filter, process == nullptr ? 0 : process->pid,
                             state_.definitions.threads()[thread_].tid);
  return !threads.admits();
}

// Whether records are missing of some of the time from now on.
bool ThreadStack::has_gap_until(int64_t time_ns) const {
  if (frames_.kernel_frames() != 0) return false;
  if (missing_.has_value() && missing_->from_ns < time_ns &&
      missing_->to_ns > frames_.now_ns()) {
    return true;
  }
  for (size_t i = off_index_; i < state_.off.size(); ++i) {
    if (state_.off[i].from_ns >= time_ns) break;
    if (state_.off[i].to_ns > frames_.now_ns() && is_about(state_.off[i])) return true;
  }
  return false;
}

// Whether all records from `from_ns` to `end_ns` are missing; INT64_MAX: to the end.
bool ThreadStack::is_missing_until(int64_t from_ns, int64_t end_ns) const {
  if (missing_.has_value() && missing_->from_ns <= from_ns && missing_->to_ns >= end_ns) {
    return true;
  }
  return std::any_of(state_.off.begin(), state_.off.end(), [&](const OffStretch& off) {
    return off.from_ns <= from_ns && off.to_ns >= end_ns && is_about(off);
  });
}

// The time up to `time_ns` passes, as far as the thread's state is known in that, and
// then in one that is not.
void ThreadStack::pass(int64_t time_ns, uint64_t left_in_gap) {
  if (const int64_t known_ns = schedule_.known_until_ns(); known_ns < time_ns) {
    pass_life(known_ns, has_gap_until(known_ns) ? std::exchange(left_in_gap, 0) : 0);
    schedule_.lose();
  }
  pass_life(time_ns, left_in_gap);
}

// The time up to `time_ns` passes in one state. Where records are missing, or an
// interrupt has the CPU, it is charged to no frame. The innermost `left_in_gap` frames
// were left in the first such stretch: when it began, as far as is known. A thread that
// is in the kernel is there whatever is missing.
void ThreadStack::pass_life(int64_t time_ns, uint64_t left_in_gap) {
  while (!parts_.empty() && parts_.back().from_ns <= time_ns &&
         frames_.kernel_frames() == 0) {
    // Before [exit] begins in a gap, frames are left that were left in the gap. The other
    // parts of a life are of the time before all calls.
    const LifePart& part = parts_.back();
    if (part.is_innermost && is_missing_until(part.from_ns, INT64_MAX)) break;
    const bool leaves = part.is_innermost && has_gap_until(part.from_ns);
    pass_part(part.from_ns, leaves ? std::exchange(left_in_gap, 0) : 0);
    begin_part();
  }
  pass_part(time_ns, left_in_gap);
}

void ThreadStack::pass_part(int64_t time_ns, uint64_t left_in_gap) {
  const RunState state = schedule_.state();
  const std::vector<OffStretch>& off = state_.off;
  const auto skip_past = [&] {
    while (off_index_ < off.size() &&
           (off[off_index_].to_ns <= frames_.now_ns() || !is_about(off[off_index_]))) {
      ++off_index_;
    }
  };
  const auto advance = [&](int64_t to_ns) {
    if (schedule_.is_interrupted()) {
      frames_.advance_gap(to_ns, state, state_.made_up.interrupts());
    } else {
      frames_.advance(to_ns, state);
    }
  };
  skip_past();
  while (has_gap_until(time_ns)) {
    const bool is_off =
        off_index_ < off.size() && off[off_index_].from_ns < time_ns &&
        (!missing_.has_value() || off[off_index_].from_ns <= missing_->from_ns);
    const MissingTime gap =
        is_off ? MissingTime{off[off_index_].from_ns,
                             std::min(off[off_index_].to_ns, time_ns),
                             off[off_index_].filter.empty() ? state_.made_up.off()
                                                            : state_.made_up.filtered()}
               : *missing_;
    advance(std::min(gap.from_ns, time_ns));
    if (left_in_gap != 0) {
      totals().exit_lost += std::min(left_in_gap, frames_.depth());
      frames_.leave(left_in_gap, kFrameExitLost);
      left_in_gap = 0;
    }
    frames_.advance_gap(std::min(gap.to_ns, time_ns), state, gap.function);
    if (!is_off && gap.to_ns <= time_ns) missing_.reset();
    skip_past();
    if (frames_.now_ns() >= time_ns) break;
  }
  advance(time_ns);
}

// The thread runs now. If it had left its CPU, the record that it got one is missing, or
// comes only now: by what is known it was off the CPU until then. What is recorded in an
// interrupt's time does not end it (READ-12).
void ThreadStack::run_until(int64_t time_ns, uint32_t cpu, uint64_t left_in_gap) {
  pass(time_ns, left_in_gap);
  if (!schedule_.is_interrupted()) schedule_.run(cpu);
}

// The thread has written a record, so that it runs. But the frames in which it begins may
// have been found by another thread, which had the process join, while it waited.
void ThreadStack::pass_until(const Record& record, uint64_t left_in_gap) {
  if (begins_in_frames(record)) {
    pass(record.time_ns, left_in_gap);
  } else {
    run_until(record.time_ns, kCpuNotKnown, left_in_gap);
  }
}

}  // namespace arctrace::reader
