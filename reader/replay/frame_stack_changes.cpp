// Changes of the whole stack of a thread: another one takes its place, the time range
// begins or ends, a vfork child runs on it, a fork child inherits it, and it ends.
#include <utility>

#include "reader/replay/frame_stack.hpp"

namespace arctrace::reader {
namespace {

// The nesting of vforks up to which stacks are restored; the effects of deeper ones stay.
constexpr size_t kVforkDepthMax = 64;

}  // namespace

// ---- All stacks of the thread --------------------------------------------------

// Exchanges all frames but the thread itself, frames_[0].
void FrameStack::exchange(Stack& stack) {
  frames_.swap(stack.frames);
  std::swap(frames_.front(), stack.frames.front());
  std::swap(wall_, stack.wall);
  std::swap(cpu_, stack.cpu);
  std::swap(removed_, stack.removed);
  std::swap(depth_, stack.depth);
  std::swap(inherited_, stack.inherited);
  vforks_.swap(stack.vforks);
  std::swap(keep_depth_, stack.keep_depth);
  std::swap(has_open_keys_, stack.has_open_keys);
  open_keys_.swap(stack.open_keys);
}

template <class Visit>
void FrameStack::on_each_stack(const Visit& visit) {
  visit();
  const uint32_t current = coroutine_;
  for (auto& [coroutine, stack] : suspended_) {
    exchange(stack);
    coroutine_ = coroutine;
    visit();
    exchange(stack);
  }
  coroutine_ = current;
}

// ---- The time range ----------------------------------------------------------

void FrameStack::change_phase() {
  const ReplayFilter& filter = state_.filter;
  if (phase_ == Phase::kBefore) {
    // A thread whose first record comes after the range has no part in it.
    if (first_ns_ >= filter.until_ns) {
      next_phase_ns_ = INT64_MAX;
      return;
    }
    phase_ = Phase::kInside;
    next_phase_ns_ = filter.until_ns;
    on_each_stack([this] { count_open(); });
  }
  if (phase_ == Phase::kInside && now_ >= next_phase_ns_) {
    phase_ = Phase::kAfter;
    next_phase_ns_ = INT64_MAX;
    // The whole duration of a call decides whether it is shown.
    if (filter.min_duration_ns == 0) on_each_stack([this] { close_cut(); });
  }
}

// Closes open calls where the time range ends: what happens to them later is not in it.
void FrameStack::close_cut() {
  for (size_t i = frames_.size(); i-- > 1;) {
    Frame& frame = frames_[i];
    if ((frame.flags & kFrameCounted) == 0) continue;
    mark_frame(frame, 0);
    report_closed(frame, kFrameCutStop, true);
    removed_ += removed_from(frame);
    frame.flags &= static_cast<uint16_t>(~unsigned{kFrameCounted});
  }
}

// Counts the calls that are open when the time range begins.
void FrameStack::count_open() {
  for (size_t i = 1; i < frames_.size(); ++i) {
    if (frames_[i].shown == i) count(frames_[i]);
  }
}

// ---- vfork -------------------------------------------------------------------

void FrameStack::vfork_begin() {
  keep_depth_ = depth_;
  if (vforks_.size() < kVforkDepthMax) vforks_.push_back({depth_, depth_, {}});
}

uint64_t FrameStack::vfork_end() {
  const uint64_t lowest = vforks_.back().lowest;
  const uint64_t left_open = depth_ > lowest ? depth_ - lowest : 0;
  leave(left_open, kFrameUnwound);
  VforkPoint vfork = std::move(vforks_.back());
  vforks_.pop_back();
  for (auto frame = vfork.removed.rbegin(); frame != vfork.removed.rend(); ++frame) {
    if ((frame->flags & kFrameCounted) != 0) frame->flags |= kFrameResumed;
    frame->flags &= static_cast<uint16_t>(~unsigned{kFrameCounted});
    frame->self_ns = 0;
    frame->cpu = {};
    frame->overhead_ps = 0;
    frames_.push_back(*frame);
    enter_top();
  }
  keep_depth_ = depth_;
  return left_open;
}

// ---- Coroutines --------------------------------------------------------------

void FrameStack::switch_stack(uint32_t coroutine, FunctionId function) {
  if (coroutine == coroutine_) return;
  Stack next;
  const auto found = suspended_.find(coroutine);
  const bool is_new = found == suspended_.end();
  if (!is_new) {
    next = std::move(found->second);
    suspended_.erase(found);
  }
  exchange(next);
  suspended_.emplace(coroutine_, std::move(next));
  coroutine_ = coroutine;
  if (is_new && coroutine != 0) push_part(function);
}

uint64_t FrameStack::suspended_frames() const {
  uint64_t frames = 0;
  for (const auto& [coroutine, stack] : suspended_)
    frames += stack.depth + stack.inherited;
  return frames;
}

// ---- Inherited frames ---------------------------------------------------------

void FrameStack::inherit(std::span<const KeyAndFunction> frames, uint16_t flags) {
  for (const KeyAndFunction& frame : frames) {
    push(frame.key, frame.function, flags, 0);
  }
  inherited_ = static_cast<uint32_t>(frames_.size() - 1);
}

bool FrameStack::leave_inherited(uint64_t key) {
  uint32_t found = inherited_;
  while (found > 0 && frames_[found].key != key) --found;
  if (found == 0) return false;
  while (frames_.size() - 1 > inherited_) pop(0);
  for (; inherited_ > found; --inherited_) {
    ++(in_range() ? state_.totals : state_.outside).exit_lost;
    pop(kFrameExitLost);
  }
  pop(0);
  --inherited_;
  return true;
}

// ---- The end -------------------------------------------------------------------

void FrameStack::close_stack() {
  vforks_.clear();
  while (frames_.size() > 1) {
    const uint16_t flags = is_part(frames_.back()) ? 0 : kFrameOpen;
    depth_ -= frames_.back().width;
    pop(flags);
  }
}

void FrameStack::finish() {
  leave_kernel(kernel_frames_, kFrameOpen);
  on_each_stack([this] { close_stack(); });
  suspended_.clear();
  if (state_.has_dispatches) state_.tree.choose_clock(root(), state_.clock);
  if (state_.is_corrected) {
    state_.tree.correct(root(), state_.clock, state_.has_dispatches);
  }
  state_.tree.sum_up(root());
  frames_.shrink_to_fit();
}

}  // namespace arctrace::reader
