// Applies a thread's own records to its frames.
#include "reader/replay/thread_stack.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "reader/trace/call_args.hpp"
#include "src/base/untrusted_bytes.hpp"

namespace arctrace::reader {
namespace {

// Adopted frames nest. The limit bounds the depth of the tree if a program again and
// again exits from functions that it never entered; further such exits are orphans.
constexpr uint32_t kAdoptedMax = 1u << 16;

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
  if (state.definitions.threads()[thread].is_foreign) schedule_.set_foreign();
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
  if (is_dying_) {
    pass_until(record);
    go_on_living();
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

void ThreadStack::begin(int64_t time_ns) {
  frames_.begin(time_ns);
  // A thread that only the kernel's records know existed before the first of them.
  if (kernel_only_) {
    schedule_.start_not_known();
  } else {
    schedule_.start();
  }
}

// Unusual frames count for the totals of the range if they are in it.
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

// Shows the locks of a call as its arguments.
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
  // After a gap the known frames do not have the entry.
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
  // one, and names it. The frame that the reader takes for that may be from before a
  // loss.
  if (!broken_ && frames_.depth() > ARCTRACE_OPEN_FRAMES_MAX) {
    frames_.leave(1, 0);
    return;
  }
  // The key is searched first: an exit that matches no frame must not destroy the stack.
  // A writer that has listed all its frames has searched already.
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

// Adopts a function that was entered before the first record: everything outside of
// frames so far was in it.
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
  // The first record after a gap tells the frames that were left in the gap.
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

// Leaves unwound frames. No hook sees the exit of a frame that was open before tracing
// began: it was left at some time since the record before.
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
    // The frames that the child left on the stack are not known until the next STACK.
    // VFORK_BEGIN may be among the records that were lost before a STACK of the child.
    if (!broken_ && losses_ == 0) {
      add_finding(Rule::kVforkNested, record, "VFORK_END without VFORK_BEGIN");
    }
    broken_ = true;
    return;
  }
  totals().unwound += frames_.vfork_end();
  if (frames_.depth() > ARCTRACE_OPEN_FRAMES_MAX) is_complete_ = false;
}

void ThreadStack::add_finding(Rule rule, const Record& record, const std::string& what) {
  const Thread* thread = state_.definitions.thread(thread_);
  state_.findings.add(
      rule, absl::StrCat("thread ", thread == nullptr ? 0 : thread->tid, ": ", what),
      record.chunk, record.offset);
}

}  // namespace arctrace::reader
