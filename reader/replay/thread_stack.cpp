#include "reader/replay/thread_stack.hpp"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "reader/trace/bytes.hpp"

namespace arctrace::reader {
namespace {

// Times beyond are cut, so that a thread's time fits 63 bits; 73 years.
constexpr int64_t kTimeLimit = int64_t{1} << 61;

// Adopted frames nest; a program that exits what it never entered, again and again, must
// not build a tree as deep as it is wrong. Further ones are orphans.
constexpr uint32_t kAdoptedMax = 1u << 16;

// vfork children that vfork in turn; deeper ones are not undone.
constexpr size_t kVforkDepthMax = 64;

// From this depth on EXIT_NAMED asks a map first whether the search has a chance.
constexpr size_t kSearchDepth = 64;

uint64_t elapsed(int64_t from_ns, int64_t to_ns) {
  return static_cast<uint64_t>(to_ns) - static_cast<uint64_t>(from_ns);
}

}  // namespace

ThreadStack::ThreadStack(ReplayState& state, ThreadIndex thread, ProcessIndex process,
                         bool fork_child)
    : state_(state), thread_(thread), process_(process), fork_child_(fork_child) {
  const bool has_range = state.filter.has_range();
  phase_ = has_range ? Phase::kBefore : Phase::kInside;
  next_phase_ns_ = has_range ? state.filter.from_ns : INT64_MAX;
  Frame root{};
  root.node = state.tree.add_root();
  state.tree[root.node].calls = 1;
  root.width = 1;
  root.function = kRootFunction;
  frames_.push_back(root);
}

int64_t ThreadStack::clip(int64_t time_ns) const {
  return std::clamp(time_ns, std::max(state_.filter.from_ns, -kTimeLimit),
                    std::max(std::min(state_.filter.until_ns, kTimeLimit),
                             std::max(state_.filter.from_ns, -kTimeLimit)));
}

void ThreadStack::apply(const Record& record) {
  if (record.type >= ARCTRACE_TYPE_PROCESS) return;
  if (!has_records_) begin(record);
  advance(record.time_ns);
  if (record.after_gap) broken_ = true;
  switch (record.type) {
    case ARCTRACE_TYPE_ENTER:
      enter(load_u64(record.body.data()));
      break;
    case ARCTRACE_TYPE_EXIT:
      exit(record);
      break;
    case ARCTRACE_TYPE_EXIT_NAMED:
      exit_named(record);
      break;
    case ARCTRACE_TYPE_UNWIND:
      unwind(record);
      break;
    case ARCTRACE_TYPE_VFORK_BEGIN:
      vfork_begin();
      point(PointInfo::Kind::kRecord, record);
      break;
    case ARCTRACE_TYPE_VFORK_END:
      vfork_end(record);
      point(PointInfo::Kind::kRecord, record);
      break;
    case ARCTRACE_TYPE_STACK:
      stack(record);
      return;
    case ARCTRACE_TYPE_LOST:
      lost(record);
      return;
    case ARCTRACE_TYPE_ARGUMENTS:
    case ARCTRACE_TYPE_RESULT:
      values(record);
      break;
    case ARCTRACE_TYPE_EVENT:
    case ARCTRACE_TYPE_INSTANT:
    case ARCTRACE_TYPE_COUNTER:
    case ARCTRACE_TYPE_TEXT:
    case ARCTRACE_TYPE_MARK:
      point(PointInfo::Kind::kRecord, record);
      break;
    default:
      break;
  }
  has_calls_ = true;
}

// ---- Time ------------------------------------------------------------------

void ThreadStack::begin(const Record& record) {
  has_records_ = true;
  first_ns_ = now_ = record.time_ns;
  frames_.front().start_ns = first_ns_;
}

void ThreadStack::advance(int64_t time_ns) {
  if (time_ns > now_) {
    const Frame& top = frames_.back();
    const uint64_t passed = elapsed(clip(now_), clip(time_ns));
    state_.tree[top.node].base_ns += passed;
    frames_[top.shown].base_ns += passed;
    charge_off_time(top, passed);
    now_ = time_ns;
  }
  if (now_ >= next_phase_ns_) change_phase();
}

// A thread that writes a record runs: what is left open is another clock's error.
void ThreadStack::charge_off_time(const Frame& top, uint64_t passed) {
  off_since_ = ready_since_ = kNever;
  if (off_.empty()) return;
  OffTime off = std::exchange(off_, OffTime{});
  if (phase_ != Phase::kInside) return;
  off.off_ns = std::min(off.off_ns, passed);
  off.ready_ns = std::min(off.ready_ns, off.off_ns);
  state_.tree.off_time(top.node) += off;
  frames_[top.shown].off += off;
}

void ThreadStack::left_cpu(int64_t time_ns, bool ready) {
  if (!has_records_) return;
  off_since_ = std::max(time_ns, now_);
  ready_since_ = ready ? off_since_ : kNever;
  ++off_.switches;
}

void ThreadStack::woken(int64_t time_ns) {
  if (off_since_ != kNever && ready_since_ == kNever) {
    ready_since_ = std::max(time_ns, off_since_);
  }
}

void ThreadStack::got_cpu(int64_t time_ns) {
  if (off_since_ == kNever || time_ns < off_since_) return;
  off_.off_ns += elapsed(off_since_, time_ns);
  if (ready_since_ != kNever && ready_since_ <= time_ns) {
    off_.ready_ns += elapsed(ready_since_, time_ns);
  }
  off_since_ = ready_since_ = kNever;
}

void ThreadStack::change_phase() {
  const ReplayFilter& filter = state_.filter;
  if (phase_ == Phase::kBefore) {
    // A thread with its first record behind the range is in none of it.
    if (first_ns_ >= filter.until_ns) {
      next_phase_ns_ = INT64_MAX;
      return;
    }
    phase_ = Phase::kInside;
    next_phase_ns_ = filter.until_ns;
    for (size_t i = 1; i < frames_.size(); ++i) {
      if (frames_[i].shown == i) count(frames_[i]);
    }
  }
  if (phase_ == Phase::kInside && now_ >= next_phase_ns_) {
    phase_ = Phase::kAfter;
    next_phase_ns_ = INT64_MAX;
  }
}

// A shown frame's call begins to count.
void ThreadStack::count(Frame& frame) {
  frame.flags |= kFrameCounted;
  if ((frame.flags & (kFrameInherited | kFrameResumed)) == 0) {
    ++state_.tree[frame.node].calls;
  }
  if (state_.listener != nullptr) {
    frame.token = state_.listener->frame_opened(info_of(frame, 0));
  }
}

FrameInfo ThreadStack::info_of(const Frame& frame, uint16_t flags) const {
  FrameInfo info{};
  info.thread = thread_;
  info.function = frame.function;
  info.depth = frame.depth;
  info.count = static_cast<uint32_t>(
      std::min<uint64_t>(frame.width, std::numeric_limits<uint32_t>::max()));
  info.flags = static_cast<uint16_t>((frame.flags | flags) & ~unsigned{kFrameCounted});
  info.time_ns = info.stop_ns = clip(now_);
  info.start_ns = clip(frame.start_ns);
  info.base_ns = frame.base_ns;
  if (frame.start_ns < state_.filter.from_ns) info.flags |= kFrameCutStart;
  if (now_ > state_.filter.until_ns) info.flags |= kFrameCutStop;
  return info;
}

// ---- Frames ----------------------------------------------------------------

void ThreadStack::push(uint64_t key, FunctionId function, uint16_t flags,
                       uint64_t width) {
  Frame frame{};
  frame.key = key;
  frame.start_ns = now_;
  frame.width = width;
  frame.function = function;
  frame.flags = flags;
  push_frame(frame);
}

void ThreadStack::push_frame(Frame frame) {
  Frame& parent = frames_.back();
  depth_ += frame.width;
  if (depth_ > ARCTRACE_OPEN_FRAMES_MAX) all_told_ = false;
  if (frame.function == kUnknownFunction && parent.function == kUnknownFunction) {
    parent.width += frame.width;
    return;
  }
  if (has_open_keys_) ++open_keys_[frame.key];
  if (decide_shown(parent, frame)) {
    frame.shown = static_cast<uint32_t>(frames_.size());
    frame.node = state_.tree.child(parent.node, frame.function);
    frame.depth = parent.depth + 1;
    frames_.push_back(frame);
    if (phase_ == Phase::kInside) count(frames_.back());
  } else {
    frame.shown = parent.shown;
    frame.node = parent.node;
    frame.depth = parent.depth;
    frames_.push_back(frame);
  }
}

bool ThreadStack::decide_shown(const Frame& parent, Frame& frame) {
  const ReplayFilter& filter = state_.filter;
  if (filter.has_functions()) {
    const FunctionMatcher::Verdict verdict = state_.matcher.match(frame.function);
    frame.only = parent.only || verdict.only;
    frame.except = parent.except || verdict.except;
    if (frame.except || (!filter.only.empty() && !frame.only)) return false;
  }
  return parent.depth < filter.max_depth && phase_ != Phase::kAfter;
}

// The innermost `count` frames are left, or as many as there are.
void ThreadStack::leave(uint64_t count, uint16_t flags) {
  while (count > 0 && depth_ > 0) {
    Frame& top = frames_.back();
    const uint64_t left = std::min(count, top.width);
    if (!vforks_.empty() && depth_ - left < vforks_.back().lowest) {
      // The parent has not left it, and will go on in it.
      VforkPoint& vfork = vforks_.back();
      Frame kept = top;
      kept.width = vfork.lowest - (depth_ - left);
      vfork.lowest = depth_ - left;
      vfork.removed.push_back(kept);
    }
    count -= left;
    if (left < top.width) {
      top.width -= left;
    } else {
      pop(flags);
    }
    depth_ -= left;
    keep_depth_ = std::min(keep_depth_, depth_);
  }
}

void ThreadStack::pop(uint16_t flags) {
  const Frame& frame = frames_.back();
  if (has_open_keys_) {
    const auto found = open_keys_.find(frame.key);
    if (--found->second == 0) open_keys_.erase(found);
  }
  if ((frame.flags & kFrameCounted) != 0) {
    const bool shown = (flags & kFrameOpen) != 0 || depth_ - frame.width < keep_depth_ ||
                       elapsed(frame.start_ns, now_) >= state_.filter.min_duration_ns;
    if (!shown) fold(frame);
    if (shown && (frame.flags | flags) != kFrameCounted) mark_frame(frame, flags);
    if (state_.listener != nullptr) {
      state_.listener->frame_closed(info_of(frame, flags), frame.token, shown);
    }
  }
  frames_.pop_back();
}

// Takes back the call of the innermost frame: its time goes to the shown frame around it.
void ThreadStack::fold(const Frame& frame) {
  CallNode& node = state_.tree[frame.node];
  if ((frame.flags & kFrameInherited) == 0) --node.calls;
  node.base_ns -= frame.base_ns;
  const Frame& around = frames_[frames_.size() - 2];
  state_.tree[around.node].base_ns += frame.base_ns;
  frames_[around.shown].base_ns += frame.base_ns;
  if (frame.off.empty()) return;
  state_.tree.off_time(frame.node) -= frame.off;
  state_.tree.off_time(around.node) += frame.off;
  frames_[around.shown].off += frame.off;
}

void ThreadStack::mark_frame(const Frame& frame, uint16_t flags) {
  const unsigned all = unsigned{frame.flags} | flags;
  constexpr unsigned kMarked =
      kFrameUnwound | kFrameExitLost | kFrameEntryLost | kFrameInherited | kFrameOpen;
  if ((all & kMarked) == 0) return;
  NodeMarks& marks = state_.tree.mark(frame.node);
  if ((all & kFrameUnwound) != 0) ++marks.unwound;
  if ((all & kFrameExitLost) != 0) ++marks.exit_lost;
  if ((all & kFrameOpen) != 0) ++marks.open;
  // What a resumed frame was entered by is counted already.
  if ((all & kFrameResumed) != 0) return;
  if ((all & kFrameEntryLost) != 0) ++marks.entry_lost;
  if ((all & kFrameInherited) != 0) ++marks.inherited;
}

// ---- Records ---------------------------------------------------------------

void ThreadStack::enter(uint64_t key) {
  push(key, state_.resolver.resolve(process_, key, now_), 0);
}

void ThreadStack::exit(const Record& record) {
  if (depth_ > 0) {
    leave(1, 0);
    return;
  }
  orphan(record, kUnknownFunction);
  if (!broken_) add_finding(Rule::kFramesOpen, record, "EXIT, and no frame is open");
}

void ThreadStack::exit_named(const Record& record) {
  const uint64_t key = load_u64(record.body.data());
  // A vfork child leaves nothing for good: what its parent is in will be left again.
  if (depth_ == 0 && vforks_.empty()) {
    adopt(record);
    return;
  }
  if (frames_.back().key == key) {
    leave(1, 0);
    return;
  }
  // Look before popping: an exit that fits nothing must not destroy the stack. A writer
  // that has told all its frames has looked already.
  if ((broken_ || !all_told_) && is_open(key)) {
    while (frames_.back().key != key) {
      const uint64_t width = frames_.back().width;
      state_.totals.exit_lost += width;
      leave(width, kFrameExitLost);
    }
    leave(1, 0);
    return;
  }
  orphan(record, state_.resolver.resolve(process_, key, now_));
}

bool ThreadStack::is_open(uint64_t key) {
  if (frames_.size() > kSearchDepth && !has_open_keys_) {
    has_open_keys_ = true;
    for (size_t i = 1; i < frames_.size(); ++i) ++open_keys_[frames_[i].key];
  }
  if (has_open_keys_) return open_keys_.contains(key);
  return std::any_of(frames_.begin() + 1, frames_.end(),
                     [key](const Frame& frame) { return frame.key == key; });
}

// The function was entered before the first record: all that was not in a frame so far
// was in it.
void ThreadStack::adopt(const Record& record) {
  const uint64_t key = load_u64(record.body.data());
  const FunctionId function = state_.resolver.resolve(process_, key, now_);
  if (adopted_ == kAdoptedMax) {
    orphan(record, function);
    return;
  }
  ++adopted_;
  ++state_.totals.entered_before;
  if (phase_ == Phase::kBefore) return;
  Frame& root = frames_.front();
  Frame frame{};
  frame.start_ns = first_ns_;
  frame.base_ns = root.base_ns;
  frame.width = 1;
  frame.function = function;
  frame.depth = 1;
  frame.flags = kFrameEnteredBefore;
  const Phase phase = std::exchange(phase_, Phase::kInside);  // it was open in the range
  const bool shown = decide_shown(root, frame);
  phase_ = phase;
  if (!shown) return;
  const NodeIndex node = root.node;
  root.node = state_.tree.put_above(node, function);
  root.base_ns = 0;
  root.off = {};
  state_.tree[root.node].calls = 1;
  ++state_.tree.mark(node).entered_before;
  if (state_.listener != nullptr) state_.listener->frame_adopted(info_of(frame, 0));
}

void ThreadStack::orphan(const Record& record, FunctionId function) {
  ++state_.totals.orphans;
  if (phase_ == Phase::kInside) ++state_.tree.mark(frames_.back().node).orphan_exits;
  point(PointInfo::Kind::kOrphan, record, function);
}

void ThreadStack::unwind(const Record& record) {
  const uint64_t count = load_u32(record.body.data());
  const uint64_t open = depth_;
  state_.totals.unwound += std::min(count, open);
  leave(count, kFrameUnwound);
  if (count > open && !broken_) {
    add_finding(Rule::kFramesOpen, record,
                absl::StrCat("UNWIND of ", count, " frames, and ", open, " are open"));
  }
}

void ThreadStack::vfork_begin() {
  keep_depth_ = depth_;
  if (vforks_.size() < kVforkDepthMax) vforks_.push_back({depth_, depth_, {}});
}

void ThreadStack::vfork_end(const Record& record) {
  if (vforks_.empty()) {
    // What the child left on the stack is not known: STACK will say it.
    if (!broken_)
      add_finding(Rule::kVforkNested, record, "VFORK_END without VFORK_BEGIN");
    broken_ = true;
    return;
  }
  const uint64_t lowest = vforks_.back().lowest;
  if (depth_ > lowest) {
    state_.totals.unwound += depth_ - lowest;
    leave(depth_ - lowest, kFrameUnwound);
  }
  VforkPoint vfork = std::move(vforks_.back());
  vforks_.pop_back();
  for (auto frame = vfork.removed.rbegin(); frame != vfork.removed.rend(); ++frame) {
    if ((frame->flags & kFrameCounted) != 0) frame->flags |= kFrameResumed;
    frame->flags &= static_cast<uint16_t>(~unsigned{kFrameCounted});
    frame->base_ns = 0;
    frame->off = {};
    push_frame(*frame);
  }
  keep_depth_ = depth_;
}

void ThreadStack::lost(const Record& record) {
  const uint32_t flags = load_u32(record.body.data() + 4);
  const uint64_t count = load_u64(record.body.data() + 8);
  if (phase_ == Phase::kInside) {
    state_.tree.mark(frames_.back().node).lost_records += count;
  }
  // What an earlier owner of the slot lost is missing in another thread.
  if ((flags & ARCTRACE_LOST_INHERITED) == 0) broken_ = true;
  point(PointInfo::Kind::kRecord, record);
}

void ThreadStack::values(const Record& record) {
  const Frame& top = frames_.back();
  if (state_.listener == nullptr || (top.flags & kFrameCounted) == 0) return;
  state_.listener->values({thread_, top.function, top.token, clip(now_), &record});
}

void ThreadStack::add_residual_loss(uint64_t count) {
  has_residual_loss_ = true;
  state_.tree.mark(frames_.front().node).lost_records += count;
}

// A STACK record tells the innermost `told` of `depth` frames.
void ThreadStack::stack(const Record& record) {
  const uint64_t depth = load_u32(record.body.data());
  const uint64_t told = std::min<uint64_t>(load_u32(record.body.data() + 4), depth);
  const std::byte* keys = record.body.data() + 8;
  const uint64_t floor = depth - told;  // frames below are not told
  const bool known = !broken_;
  const uint64_t known_depth = depth_;
  bool agrees = depth_ == depth;
  bool changed = !agrees;

  // The told frames that are right stay, up to the first one that is not. Frames of
  // which only the number was known become the told ones.
  uint64_t right = std::min(depth_, depth);
  uint64_t end = depth_;
  for (size_t i = frames_.size() - 1; end > floor; --i) {
    const Frame& frame = frames_[i];
    const uint64_t begin = end - frame.width;
    if (frame.function == kUnknownFunction) {
      right = std::min(right, std::max(begin, floor));
      changed = true;
    } else if (begin < depth && frame.key != load_u64(keys + 8 * (begin - floor))) {
      right = std::min(right, begin);
      agrees = false;
      changed = true;
    }
    end = begin;
  }
  if (known && !agrees) {
    add_finding(Rule::kStackAgrees, record,
                absl::StrCat("STACK of ", depth, " frames differs from the ", known_depth,
                             " that are known"));
    point(PointInfo::Kind::kResync, record);
  }
  if (changed) {
    state_.totals.resyncs += has_calls_ ? 1 : 0;
    if (!known) vforks_.clear();  // whether their ends are among the lost is not known
    if (depth_ > right) {
      state_.totals.exit_lost += depth_ - right;
      leave(depth_ - right, kFrameExitLost);
    }
    const bool inherited = fork_child_ && !has_calls_ && !record.after_gap;
    const uint16_t flag = inherited ? kFrameInherited : kFrameEntryLost;
    (inherited ? state_.totals.inherited : state_.totals.entry_lost) += depth - depth_;
    if (depth_ < floor) push(0, kUnknownFunction, flag, floor - depth_);
    while (depth_ < depth) {
      const uint64_t key = load_u64(keys + 8 * (depth_ - floor));
      push(key, state_.resolver.resolve(process_, key, now_), flag);
    }
  }
  broken_ = false;
  all_told_ = told == depth;
}

void ThreadStack::point(PointInfo::Kind kind, const Record& record, FunctionId function) {
  if (state_.listener == nullptr || phase_ != Phase::kInside) return;
  state_.listener->point(
      {kind, thread_, function, frames_.back().depth, clip(now_), &record});
}

void ThreadStack::add_finding(Rule rule, const Record& record, const std::string& what) {
  const Thread* thread = state_.definitions.thread(thread_);
  state_.findings.add(
      rule, absl::StrCat("thread ", thread == nullptr ? 0 : thread->tid, ": ", what),
      record.chunk, record.offset);
}

void ThreadStack::finish() {
  if (frames_.empty()) return;
  state_.totals.open += depth_;
  vforks_.clear();
  leave(depth_, kFrameOpen);
  state_.tree.sum_up(frames_.front().node);
  frames_.shrink_to_fit();
}

}  // namespace arctrace::reader
