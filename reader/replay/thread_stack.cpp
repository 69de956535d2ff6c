#include "reader/replay/thread_stack.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "reader/trace/call_args.hpp"
#include "src/base/untrusted_bytes.hpp"

namespace arctrace::reader {
namespace {

// Adopted frames nest. The limit keeps the tree of a program that again and again leaves
// what it never entered from becoming ever deeper; further such exits are orphans.
constexpr uint32_t kAdoptedMax = 1u << 16;

// Whose frames a STACK or COROUTINE record gives.
uint32_t coroutine_of(const Record& record) {
  if (record.type == ARCTRACE_TYPE_COROUTINE) {
    return load_part_untrusted<arctrace_coroutine_body>(record.body).coroutine;
  }
  const auto body = load_part_untrusted<arctrace_stack_body>(record.body);
  const std::span<const std::byte> rest = record.body.subspan(
      sizeof body + std::min(body.count, body.depth) * sizeof(uint64_t));
  return rest.size() < sizeof(uint32_t) ? 0 : load_part_untrusted<uint32_t>(rest);
}

}  // namespace

ThreadStack::ThreadStack(ReplayState& state, ThreadIndex thread)
    : state_(state),
      thread_(thread),
      process_(state.definitions.threads()[thread].process),
      kernel_only_(state.definitions.threads()[thread].of_kernel()),
      frames_(state, thread),
      kernel_(frames_, state),
      schedule_(frames_, thread,
                state.has_dispatches ? &state.definitions.kernel_gaps() : nullptr,
                state.schedule) {
  const Process* process = state.definitions.process(process_);
  fork_child_ = process != nullptr && process->origin == ARCTRACE_ORIGIN_FORK;
  // Of one whose number is not known, the kernel's records tell nothing.
  const Thread& facts = state.definitions.threads()[thread];
  if (facts.is_foreign || (facts.tid == 0 && state.has_dispatches)) {
    schedule_.set_foreign();
  }
}

void ThreadStack::apply(const Record& record) {
  if (record.type >= ARCTRACE_TYPE_PROCESS) return;
  const bool is_first = !frames_.has_begun();
  frames_.set_record_time(record.time_ns);
  if (!frames_.has_begun()) begin_at(record);
  if (record.after_skip) {
    is_skipped_ = broken_ = true;
    has_calls_ = true;
  }
  if (record.after_gap && !begins_in_frames(record)) {
    broken_ = true;
    ++losses_;
    // In blocks of several writers every STACK might follow a gap, and few do. But a
    // thread that begins in frames has entered them.
    if (record.compact || (is_first && has_frames(record))) {
      note_missing(
          std::max(frames_.now_ns(), state_.definitions.threads()[thread_].start_ns),
          record.time_ns,
          state_.is_overwritten ? state_.made_up.overwritten()
                                : state_.made_up.missing());
    }
  }
  // A thread that writes a record is not in the kernel.
  if (frames_.kernel_frames() != 0) {
    pass_until(record);
    kernel_.leave_all(!frames_.in_vfork());
  }
  switch (record.type) {
    case ARCTRACE_TYPE_STACK:
      stack(record);
      return;
    case ARCTRACE_TYPE_COROUTINE:
      stack(record);
      frames_.point(PointInfo::Kind::kRecord, record, kUnknownFunction);
      has_calls_ = true;
      return;
    case ARCTRACE_TYPE_LOST:
      lost(record);
      return;
    case ARCTRACE_TYPE_UNWIND:
      unwind(record);
      has_calls_ = true;
      return;
    default:
      run_until(record.time_ns);
  }
  switch (record.type) {
    case ARCTRACE_TYPE_ENTER:
      enter(load_part_untrusted<arctrace_frame_body>(record.body).key);
      add_locks(record);
      break;
    case ARCTRACE_TYPE_EXIT:
      exit(record);
      break;
    case ARCTRACE_TYPE_EXIT_NAMED:
      exit_named(record);
      break;
    case ARCTRACE_TYPE_VFORK_BEGIN:
      frames_.vfork_begin();
      frames_.point(PointInfo::Kind::kRecord, record, kUnknownFunction);
      break;
    case ARCTRACE_TYPE_VFORK_END:
      vfork_end(record);
      frames_.point(PointInfo::Kind::kRecord, record, kUnknownFunction);
      break;
    case ARCTRACE_TYPE_ARGUMENTS:
    case ARCTRACE_TYPE_RESULT:
      frames_.args(record);
      frames_.charge_args_cost();
      break;
    case ARCTRACE_TYPE_EVENT:
    case ARCTRACE_TYPE_INSTANT:
    case ARCTRACE_TYPE_COUNTER:
    case ARCTRACE_TYPE_TEXT:
    case ARCTRACE_TYPE_MARK:
      frames_.point(PointInfo::Kind::kRecord, record, kUnknownFunction);
      break;
    default:
      break;
  }
  has_calls_ = true;
}

bool ThreadStack::has_frames(const Record& record) {
  return record.type == ARCTRACE_TYPE_STACK &&
         load_part_untrusted<arctrace_stack_body>(record.body).depth != 0;
}

bool ThreadStack::begins_in_frames(const Record& record) {
  if (!has_frames(record)) return false;
  const auto body = load_part_untrusted<arctrace_stack_body>(record.body);
  const size_t frames = std::min(body.count, body.depth) * sizeof(uint64_t);
  return record.body.size() >= sizeof body + frames + sizeof(uint32_t) &&
         coroutine_of(record) == 0;
}

void ThreadStack::begin(int64_t time_ns) {
  frames_.begin(time_ns);
  // A thread of which only the kernel's records tell was there before the first of them.
  if (kernel_only_) {
    schedule_.start_not_known();
  } else {
    schedule_.start();
  }
}

// What is unusual counts where the range is.
ReplayTotals& ThreadStack::totals() {
  return frames_.in_range() ? state_.totals : state_.outside;
}

// ---- The thread's own records ------------------------------------------------

FunctionId ThreadStack::resolve(uint64_t key) {
  return state_.resolver.resolve(process_, key, frames_.now_ns());
}

void ThreadStack::enter(uint64_t key) {
  const FunctionId function = resolve(key);
  frames_.enter(key, function);
  if (state_.fork_functions.contains(function)) {
    fork_point_ = {frames_.now_ns(), keys()};
  }
  if (frames_.depth() > ARCTRACE_OPEN_FRAMES_MAX) is_complete_ = false;
}

// The locks of a call are its arguments.
void ThreadStack::add_locks(const Record& record) {
  const std::span<const std::byte> words = lock_words(record.body);
  if (words.empty()) return;
  const LockArgs locks(words);
  Record args = record;
  args.type = ARCTRACE_TYPE_ARGUMENTS;
  args.body = locks.body();
  frames_.args(args);
}

void ThreadStack::exit(const Record& record) {
  // After a gap the entry is not among the frames that are known.
  if (frames_.depth() > 0 && !record.after_gap) {
    frames_.exit();
    return;
  }
  orphan(record, kUnknownFunction);
  if (!broken_) add_finding(Rule::kFramesOpen, record, "EXIT, and no frame is open");
}

void ThreadStack::exit_named(const Record& record) {
  const uint64_t key = load_part_untrusted<arctrace_frame_body>(record.body).key;
  if (record.after_gap) {
    orphan(record, resolve(key));
    return;
  }
  // A vfork child leaves no frame for good: its parent is still in it.
  if (frames_.depth() == 0 && !frames_.in_vfork()) {
    if (frames_.inherited() == 0 && frames_.coroutine() == 0) {
      adopt(record);
    } else if (!frames_.leave_inherited(key)) {
      orphan(record, resolve(key));
    }
    return;
  }
  if (frames_.depth() > 0 && frames_.top().key == key) {
    frames_.exit();
    return;
  }
  // A writer does not know its frames beyond the limit: there it leaves the innermost
  // one, and names it. What the reader takes for that may be left over from before a
  // loss.
  if (!broken_ && frames_.depth() > ARCTRACE_OPEN_FRAMES_MAX) {
    frames_.leave(1, 0);
    return;
  }
  // Search first: an exit that fits no frame must not destroy the stack. A writer that
  // has reported all its frames has searched already.
  if ((broken_ || !is_complete_) && frames_.is_open(key)) {
    while (frames_.depth() > 0 && frames_.top().key != key) {
      if (frames_.in_part()) {
        frames_.leave_part();
        continue;
      }
      const uint64_t width = frames_.top().width;
      totals().exit_lost += width;
      frames_.leave(width, kFrameExitLost);
    }
    if (frames_.depth() > 0) {
      frames_.leave(1, 0);
    } else {
      frames_.leave_inherited(key);
    }
    return;
  }
  orphan(record, resolve(key));
}

// The function was entered before the first record: all that was outside of frames so far
// was in it.
void ThreadStack::adopt(const Record& record) {
  const uint64_t key = load_part_untrusted<arctrace_frame_body>(record.body).key;
  const FunctionId function = resolve(key);
  if (adopted_ == kAdoptedMax) {
    orphan(record, function);
    return;
  }
  ++adopted_;
  ++totals().entered_before;
  frames_.adopt(function);
}

void ThreadStack::orphan(const Record& record, FunctionId function) {
  ++totals().orphans;
  if (frames_.in_range()) ++frames_.mark_top().orphan_exits;
  frames_.point(PointInfo::Kind::kOrphan, record, function);
}

void ThreadStack::unwind(const Record& record) {
  const uint64_t count = load_part_untrusted<arctrace_unwind_body>(record.body).count;
  // What was left while records were missing is reported by the first record after that.
  if (has_gap_until(record.time_ns)) {
    run_until(record.time_ns, kCpuNotKnown, count);
    return;
  }
  run_until(record.time_ns);
  const uint64_t open = frames_.depth();
  leave_unwound(std::min(count, open));
  if (count > open && !broken_) {
    add_finding(Rule::kFramesOpen, record,
                absl::StrCat("UNWIND of ", count, " frames, and ", open, " are open"));
  }
}

// Of a frame that was open before tracing began no hook sees the exit: it was left at
// some time since the record before.
void ThreadStack::leave_unwound(uint64_t count) {
  while (count > 0) {
    if (frames_.in_part()) {
      frames_.leave_part();
      continue;
    }
    const uint64_t width = std::min(count, frames_.top().width);
    const bool is_unseen = (frames_.top().flags & kFrameEnteredBefore) != 0;
    (is_unseen ? totals().exit_lost : totals().unwound) += width;
    frames_.leave(width, is_unseen ? kFrameExitLost : kFrameUnwound);
    count -= width;
  }
}

void ThreadStack::vfork_end(const Record& record) {
  if (!frames_.in_vfork()) {
    // What the child left on the stack is not known until the next STACK. The beginning
    // may be among what was lost before a STACK that the child has written.
    if (!broken_ && losses_ == 0) {
      add_finding(Rule::kVforkNested, record, "VFORK_END without VFORK_BEGIN");
    }
    broken_ = true;
    return;
  }
  totals().unwound += frames_.vfork_end();
  if (frames_.depth() > ARCTRACE_OPEN_FRAMES_MAX) is_complete_ = false;
}

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
  // What an earlier owner of the slot lost is missing in another thread.
  if (is_own) {
    broken_ = true;
    ++losses_;
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

// The thread goes on on another stack. What readers know of that is what they knew when
// it was left, unless records are missing since.
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

// A STACK or COROUTINE record reports the innermost `count` of `depth` frames.
void ThreadStack::stack(const Record& record) {
  const bool is_switch = record.type == ARCTRACE_TYPE_COROUTINE;
  const std::span<const std::byte> frames =
      is_switch ? record.body.subspan(offsetof(arctrace_coroutine_body, depth))
                : record.body;
  const auto body = load_part_untrusted<arctrace_stack_body>(frames);
  const uint64_t depth = body.depth;
  const uint64_t count = std::min(body.count, body.depth);
  const uint64_t floor = depth - count;  // the frames below are not reported
  const std::span<const std::byte> keys = frames.subspan(sizeof body);
  const auto reported_key = [&](uint64_t frame) {  // REQUIRES: floor <= frame < depth
    return load_part_untrusted<uint64_t>(
        keys.subspan((frame - floor) * sizeof(uint64_t)));
  };
  if (const uint32_t coroutine = coroutine_of(record); coroutine != frames_.coroutine()) {
    run_until(record.time_ns);
    switch_stack(coroutine);
  }
  // What was passed over is not lost.
  const bool is_skipped = std::exchange(is_skipped_, false);
  const uint64_t known_depth = frames_.depth();
  bool agrees = known_depth == depth;
  bool changed = !agrees;

  // The known frames stay as far as they are the reported ones. Frames of which only the
  // number was known are replaced by reported ones.
  uint64_t right = std::min(known_depth, depth);
  uint64_t end = known_depth;
  for (size_t i = frames_.frames().size() - 1; end > floor; --i) {
    const FrameStack::Frame& frame = frames_.frames()[i];
    if (frame.width == 0) continue;  // a part of the process' life
    const uint64_t begin = end - frame.width;
    if (frame.function == kUnknownFunction) {
      right = std::min(right, std::max(begin, floor));
      changed = true;
    } else if (begin < depth && frame.key != reported_key(begin)) {
      right = std::min(right, begin);
      // Frames that were not reported after a loss may have been replaced by others.
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
    // Whether the ends of vforks are among the lost records is not known.
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
  broken_ = false;
  // One that lists the innermost frames only does not make the others unknown.
  is_complete_ = count == depth || (is_complete_ && known && !changed);
}

// Exit handlers run, and when they began records were missing: of frames that are open
// now, how many were so then, as far as their names tell. SIZE_MAX: [exit] stands where
// it should.
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

void ThreadStack::add_finding(Rule rule, const Record& record, const std::string& what) {
  const Thread* thread = state_.definitions.thread(thread_);
  state_.findings.add(
      rule, absl::StrCat("thread ", thread == nullptr ? 0 : thread->tid, ": ", what),
      record.chunk, record.offset);
}

}  // namespace arctrace::reader
