// Passes a thread's time where records may be missing, which is charged to no frame, and
// restores its frames: by a STACK, or by a COROUTINE.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "reader/replay/thread_stack.hpp"
#include "src/base/untrusted_bytes.hpp"
#include "src/protocol/record_filter.hpp"

namespace arctrace::reader {
namespace {

// Returns what follows the frames of a STACK.
std::span<const std::byte> after_frames(const Record& record) {
  const auto body = load_part_untrusted<arctrace_stack_body>(record.body);
  return record.body.subspan(sizeof body +
                             std::min(body.count, body.depth) * sizeof(uint64_t));
}

// Returns the coroutine whose frames a STACK or COROUTINE record lists.
uint32_t coroutine_of(const Record& record) {
  if (record.type == ARCTRACE_TYPE_COROUTINE) {
    return load_part_untrusted<arctrace_coroutine_body>(record.body).coroutine;
  }
  const std::span<const std::byte> rest = after_frames(record);
  return rest.size() < sizeof(uint32_t) ? 0 : load_part_untrusted<uint32_t>(rest);
}

}  // namespace

// ---- Time ------------------------------------------------------------------------

void ThreadStack::note_missing(int64_t from_ns, int64_t to_ns, FunctionId function) {
  if (from_ns >= to_ns) return;
  // An earlier stretch may still be open, if the thread was in the kernel meanwhile.
  if (missing_.has_value() && missing_->to_ns > frames_.now_ns()) {
    from_ns = std::min(from_ns, missing_->from_ns);
  }
  missing_ = MissingTime{from_ns, to_ns, function};
}

// Whether the stretch excludes this thread.
bool ThreadStack::is_about(const OffStretch& stretch) const {
  if (stretch.filter.empty()) return true;
  const Process* process = state_.definitions.process_of(thread_);
  const ThreadFilter threads(stretch.filter, process == nullptr ? 0 : process->pid,
                             state_.definitions.threads()[thread_].tid);
  return !threads.admits();
}

// Whether records are missing in a part of the time from now to `time_ns`.
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

// Lets the time up to `time_ns` pass: as far as the thread's state is known, in that
// state, and then in one that is not known.
void ThreadStack::pass(int64_t time_ns, uint64_t exits_in_gap) {
  if (const int64_t known_ns = schedule_.known_until_ns(); known_ns < time_ns) {
    pass_life(known_ns, has_gap_until(known_ns) ? std::exchange(exits_in_gap, 0) : 0);
    schedule_.lose();
  }
  pass_life(time_ns, exits_in_gap);
}

// Lets the time up to `time_ns` pass in one state. Time in which records are missing, or
// an interrupt has the CPU, is charged to no frame. The innermost `exits_in_gap` frames
// were left in the first such stretch: at its begin, as far as is known. A thread that is
// in the kernel stays there whatever is missing.
void ThreadStack::pass_life(int64_t time_ns, uint64_t exits_in_gap) {
  while (!parts_.empty() && parts_.back().from_ns <= time_ns &&
         frames_.kernel_frames() == 0) {
    // If [exit] begins in a gap, the frames that were left in the gap are left first. The
    // other parts of a lifetime are before all calls.
    const LifePart& part = parts_.back();
    if (part.is_innermost && is_missing_until(part.from_ns, INT64_MAX)) break;
    const bool leaves = part.is_innermost && has_gap_until(part.from_ns);
    pass_part(part.from_ns, leaves ? std::exchange(exits_in_gap, 0) : 0);
    begin_part();
  }
  pass_part(time_ns, exits_in_gap);
}

void ThreadStack::pass_part(int64_t time_ns, uint64_t exits_in_gap) {
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
    if (exits_in_gap != 0) {
      totals().exit_lost += std::min(exits_in_gap, frames_.depth());
      frames_.leave(exits_in_gap, kFrameExitLost);
      exits_in_gap = 0;
    }
    frames_.note_gap_until(std::min(gap.to_ns, time_ns));
    frames_.advance_gap(std::min(gap.to_ns, time_ns), state, gap.function);
    if (!is_off && gap.to_ns <= time_ns) missing_.reset();
    skip_past();
    if (frames_.now_ns() >= time_ns) break;
  }
  advance(time_ns);
}

// Notes that the thread runs now. If it had left its CPU, the record of its return is
// missing, or comes only now: by what is known it was off the CPU until then. A record in
// an interrupt's time does not end the interrupt (READ-12).
void ThreadStack::run_until(int64_t time_ns, uint32_t cpu, uint64_t exits_in_gap) {
  pass(time_ns, exits_in_gap);
  if (!schedule_.is_interrupted()) schedule_.run(cpu);
}

// A thread that writes a record runs. But the frames in which it begins may have been
// recorded by another thread, which made the process join, while this one waited.
void ThreadStack::pass_until(const Record& record, uint64_t exits_in_gap) {
  if (begins_in_frames(record)) {
    pass(record.time_ns, exits_in_gap);
  } else {
    run_until(record.time_ns, kCpuNotKnown, exits_in_gap);
  }
}

// ---- Losses ----------------------------------------------------------------------

void ThreadStack::lost(const Record& record) {
  const auto lost = load_part_untrusted<arctrace_lost_body>(record.body);
  const bool is_own = (lost.flags & ARCTRACE_LOST_INHERITED) == 0;
  if (is_own && lost.since_ticks != 0 && state_.ticks != nullptr) {
    note_missing(std::max(state_.ticks->to_ns(lost.since_ticks), frames_.now_ns()),
                 record.time_ns, state_.made_up.lost());
  } else {
    run_until(record.time_ns);
  }
  if (frames_.in_range()) frames_.mark_top().lost_records += lost.count;
  // The losses of an earlier owner of the slot are missing in another thread.
  if (is_own) {
    broken_ = true;
    ++losses_;
    if (frames_.in_range()) frames_.note_gap();
  }
  frames_.point(PointInfo::Kind::kRecord, record, kUnknownFunction);
}

void ThreadStack::add_residual_loss(const Record& record,
                                    const arctrace_lost_body& lost) {
  has_residual_loss_ = true;
  frames_.mark_root().lost_records += lost.count;
  if (lost.since_ticks != 0 && state_.ticks != nullptr && frames_.has_begun()) {
    note_missing(frames_.now_ns(), record.time_ns, state_.made_up.lost());
  }
}

// ---- Known frames ----------------------------------------------------------------

bool ThreadStack::begins_in_frames(const Record& record) {
  return has_frames(record) && after_frames(record).size() >= sizeof(uint32_t) &&
         coroutine_of(record) == 0;
}

bool ThreadStack::waits_in_frames(const Record& record) {
  if (!begins_in_frames(record)) return false;
  const std::span<const std::byte> rest = after_frames(record).subspan(sizeof(uint32_t));
  return rest.size() >= sizeof(uint32_t) &&
         load_part_untrusted<uint32_t>(rest) == ARCTRACE_STACK_WAITS;
}

// The thread goes on on another stack. Its frames are known if they were known when it
// left that stack, unless records are missing since.
void ThreadStack::switch_stack(uint32_t coroutine) {
  if (coroutine == frames_.coroutine()) return;
  known_[frames_.coroutine()] = {broken_, is_complete_, losses_};
  const auto found = known_.find(coroutine);
  const bool is_new = found == known_.end();
  broken_ = is_new || found->second.broken || found->second.losses != losses_;
  is_complete_ = !is_new && found->second.is_complete;
  frames_.switch_stack(
      coroutine, coroutine == 0 ? kRootFunction : state_.made_up.coroutine(coroutine));
}

// Whether frames that signal handlers entered or left may be among overwritten records.
bool ThreadStack::lacks_handlers(const Record& record) const {
  return record.compact && record.time_ns < state_.definitions.chain_begin_ns();
}

// A STACK or COROUTINE record lists the innermost `count` of `depth` frames.
void ThreadStack::stack(const Record& record) {
  const bool is_switch = record.type == ARCTRACE_TYPE_COROUTINE;
  const std::span<const std::byte> frames =
      is_switch ? record.body.subspan(offsetof(arctrace_coroutine_body, depth))
                : record.body;
  const auto body = load_part_untrusted<arctrace_stack_body>(frames);
  const uint64_t depth = body.depth;
  const uint64_t count = std::min(body.count, body.depth);
  const uint64_t floor = depth - count;  // the frames below are not listed
  const std::span<const std::byte> keys = frames.subspan(sizeof body);
  const auto reported_key = [&](uint64_t frame) {  // REQUIRES: floor <= frame < depth
    return load_part_untrusted<uint64_t>(
        keys.subspan((frame - floor) * sizeof(uint64_t)));
  };
  if (const uint32_t coroutine = coroutine_of(record); coroutine != frames_.coroutine()) {
    run_until(record.time_ns);
    switch_stack(coroutine);
  }
  // Records that were skipped are not lost.
  const bool is_skipped = std::exchange(is_skipped_, false);
  const uint64_t known_depth = frames_.depth();
  bool agrees = known_depth == depth;
  bool changed = !agrees;

  // Known frames stay as far as they agree with the listed ones. Frames of which only the
  // number was known are replaced by listed ones.
  uint64_t right = std::min(known_depth, depth);
  uint64_t end = known_depth;
  for (size_t i = frames_.frames().size() - 1; end > floor; --i) {
    const FrameStack::Frame& frame = frames_.frames()[i];
    if (frame.width == 0) continue;  // a part of the process' lifetime
    const uint64_t begin = end - frame.width;
    if (frame.function == kUnknownFunction) {
      right = std::min(right, std::max(begin, floor));
      changed = true;
    } else if (begin < depth && frame.key != reported_key(begin)) {
      right = std::min(right, begin);
      // Frames that were not listed after a loss may have been replaced by others.
      if (is_complete_) agrees = false;
      changed = true;
    }
    end = begin;
  }
  if (!agrees && lacks_handlers(record)) {
    broken_ = true;
    ++losses_;
  }
  const bool known = !broken_;
  pass_until(record, changed && !known && !is_skipped && known_depth > right &&
                             !frames_.in_vfork()
                         ? known_depth - right
                         : 0);
  if (known && !agrees) {
    add_finding(Rule::kStackAgrees, record,
                absl::StrCat("STACK of ", depth, " frames differs from the ", known_depth,
                             " that are known"));
    frames_.point(PointInfo::Kind::kResync, record, kUnknownFunction);
  }
  if (changed) {
    totals().resyncs += has_calls_ && !is_skipped ? 1 : 0;
    // The ends of vforks may be among the lost records.
    if (!known) frames_.forget_vforks();
    if (frames_.depth() > right) {
      if (!is_skipped) totals().exit_lost += frames_.depth() - right;
      frames_.leave(frames_.depth() - right, is_skipped ? 0 : kFrameExitLost);
    }
    const bool inherited = fork_child_ && !has_calls_ && !record.after_gap;
    const bool is_before = begins_in_frames(record);
    const uint16_t flag = is_skipped  ? 0
                          : inherited ? kFrameInherited
                          : is_before ? kFrameEnteredBefore
                                      : kFrameEntryLost;
    if (!is_skipped) {
      (inherited   ? totals().inherited
       : is_before ? totals().entered_before
                   : totals().entry_lost) += depth - frames_.depth();
    }
    if (frames_.depth() < floor) {
      frames_.push(0, is_before ? state_.made_up.not_unwound() : kUnknownFunction, flag,
                   floor - frames_.depth());
    }
    std::vector<FunctionId> missing;
    for (uint64_t frame = frames_.depth(); frame < depth; ++frame) {
      missing.push_back(resolve(reported_key(frame)));
    }
    const size_t outside = in_exit_ && !known ? frames_outside_exit(missing) : SIZE_MAX;
    for (size_t i = 0; i < missing.size(); ++i) {
      if (i == outside) frames_.push_part(state_.made_up.exit());
      frames_.push(reported_key(frames_.depth()), missing[i], flag);
    }
    if (outside == missing.size()) frames_.push_part(state_.made_up.exit());
  }
  if (waits_in_frames(record) && state_.has_dispatches) {
    schedule_.leave(ARCTRACE_SWITCH_UNKNOWN);
  }
  broken_ = false;
  // A record that lists only the innermost frames does not make the others unknown.
  is_complete_ = count == depth || (is_complete_ && known && !changed);
}

// Returns how many of the open frames stand outside of [exit], as far as their names
// tell, because records were missing when exit handlers began to run. SIZE_MAX: [exit]
// stands at its place already.
size_t ThreadStack::frames_outside_exit(std::span<const FunctionId> frames) {
  size_t outside = 0;
  for (size_t i = 0; i < frames.size(); ++i) {
    const std::string& name = state_.resolver.functions()[frames[i]].name;
    if (name == "main" || name == "exit") outside = i + 1;
  }
  const std::span<const FrameStack::Frame> open = frames_.frames();
  const FunctionId part = state_.made_up.exit();
  const bool is_open =
      std::any_of(open.begin() + 1, open.end(), [part](const FrameStack::Frame& frame) {
        return FrameStack::is_part(frame) && frame.function == part;
      });
  if (!is_open) return outside;
  if (outside == 0 || !frames_.in_part()) return SIZE_MAX;
  frames_.leave_part();
  return outside;
}

}  // namespace arctrace::reader
