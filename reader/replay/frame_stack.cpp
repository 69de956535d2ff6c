// Charges time to a thread's frames, and enters and leaves them.
#include "reader/replay/frame_stack.hpp"

#include <algorithm>
#include <limits>

#include "reader/trace/call_args.hpp"

namespace arctrace::reader {
namespace {

// Times are cut at 73 years, so that a thread's time fits 63 bits.
constexpr int64_t kTimeLimit = int64_t{1} << 61;

// From this many frames on, is_open asks a map instead of the stack.
constexpr size_t kSearchDepth = 64;

uint64_t elapsed(int64_t from_ns, int64_t to_ns) {
  return static_cast<uint64_t>(to_ns) - static_cast<uint64_t>(from_ns);
}

// Whether `is` is true of the thread's process, or of those from which that was forked,
// whose hooks it has.
bool is_any(bool Process::*is, const Definitions& definitions, ThreadIndex thread) {
  const Process* process = definitions.process_of(thread);
  for (int i = 0; process != nullptr && i < Definitions::kForkDepthMax; ++i) {
    if (process->*is) return true;
    if (process->origin != ARCTRACE_ORIGIN_FORK) break;
    process = definitions.process(definitions.find_process(process->parent_id));
  }
  return false;
}

}  // namespace

FrameStack::FrameStack(ReplayState& state, ThreadIndex thread)
    : state_(state),
      thread_(thread),
      earliest_(std::max(state.filter.from_ns, -kTimeLimit)),
      latest_(std::max(std::min(state.filter.until_ns, kTimeLimit), earliest_)),
      is_patched_(is_any(&Process::is_patched, state.definitions, thread)),
      has_hook_kinds_(is_any(&Process::has_hook_kinds, state.definitions, thread)),
      is_of_interrupts_(state.definitions.threads()[thread].interrupts_of.has_value()) {
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

// ---- Time ------------------------------------------------------------------

void FrameStack::begin(int64_t time_ns) {
  has_begun_ = true;
  first_ns_ = now_ = time_ns;
  frames_.front().start_ns = first_ns_;
}

void FrameStack::advance(int64_t time_ns, RunState state) {
  if (time_ns > now_) {
    const Frame& top = frames_.back();
    const uint64_t passed = elapsed(clip(now_), clip(time_ns));
    // For the program this time has not passed: neither on the CPU nor off it.
    if (top.is_own_work) {
      charge_cost(top, passed * 1000);
    } else {
      state_.tree[top.node].self_ns += passed;
      frames_[top.shown].self_ns += passed;
      wall_ += passed;
      if (state != RunState::kRunning && passed != 0) {
        CpuTime parts;
        parts.add(state, passed);
        charge(parts);
      }
    }
    report_time(time_ns, state, top.node);
    now_ = time_ns;
  }
  if (now_ >= next_phase_ns_) change_phase();
}

void FrameStack::advance_gap(int64_t time_ns, RunState state, FunctionId function) {
  if (time_ns <= now_) return;
  if (const uint64_t passed = elapsed(clip(now_), clip(time_ns)); passed != 0) {
    const NodeIndex node = state_.tree.child(frames_.back().node, function);
    if (node != gap_ || gap_stop_ns_ != now_) ++state_.tree[node].calls;
    gap_ = node;
    gap_stop_ns_ = time_ns;
    state_.tree[node].self_ns += passed;
    wall_ += passed;
    if (state != RunState::kRunning) {
      CpuTime parts;
      parts.add(state, passed);
      state_.tree.cpu_time(node) += parts;
      cpu_ += parts;
    }
    report_time(time_ns, state, node);
  }
  now_ = time_ns;
  if (now_ >= next_phase_ns_) change_phase();
}

void FrameStack::skip(int64_t time_ns) {
  now_ = std::max(now_, time_ns);
  if (now_ >= next_phase_ns_) change_phase();
}

void FrameStack::report_time(int64_t until_ns, RunState state, NodeIndex node) const {
  if (state_.schedule == nullptr || is_of_interrupts_) return;
  const PathTime time{thread_, state, node, clip(now_), clip(until_ns), coroutine_};
  if (time.stop_ns > time.start_ns) state_.schedule->time_passed(time);
}

void FrameStack::count_switch() {
  if (in_range()) charge({.switches = 1});
}

void FrameStack::count_interrupt() {
  if (in_range()) charge({.interrupts = 1});
}

void FrameStack::charge(const CpuTime& cpu) {
  const Frame& top = frames_.back();
  state_.tree.cpu_time(top.node) += cpu;
  frames_[top.shown].cpu += cpu;
  cpu_ += cpu;
}

// Begins to count the call of a shown frame.
void FrameStack::count(Frame& frame) {
  // The marks of a range do not tell how a call was entered before it.
  if (frame.start_ns < state_.filter.from_ns) {
    frame.flags &= static_cast<uint16_t>(~unsigned{kFrameEntryLost});
  }
  frame.flags |= kFrameCounted;
  if (is_call(frame.flags)) ++state_.tree[frame.node].calls;
  if (state_.listener != nullptr && !is_part(frame)) {
    frame.token = state_.listener->frame_opened(opened_info_of(frame, 0));
  }
}

FrameInfo FrameStack::opened_info_of(const Frame& frame, uint16_t flags) const {
  FrameInfo info{};
  info.thread = thread_;
  info.function = frame.function;
  info.node = frame.node;
  info.coroutine = coroutine_;
  info.depth = frame.depth;
  info.count = static_cast<uint32_t>(
      std::clamp<uint64_t>(frame.width, 1, std::numeric_limits<uint32_t>::max()));
  info.flags = static_cast<uint16_t>((frame.flags | flags) &
                                     ~(unsigned{kFrameCounted} | kFramePart));
  info.time_ns = event_ns();
  info.start_ns = clip(frame.start_ns);
  if (frame.start_ns < state_.filter.from_ns) info.flags |= kFrameCutStart;
  if (now_ > state_.filter.until_ns) info.flags |= kFrameCutStop;
  return info;
}

FrameInfo FrameStack::info_of(const Frame& frame, uint16_t flags) const {
  FrameInfo info = opened_info_of(frame, flags);
  // A frame whose exit is lost may have ended when the gap began.
  if (frame.gaps_before != gaps_ && (flags & kFrameExitLost) == 0) {
    info.flags |= kFrameAcrossGap;
  }
  info.stop_ns = clip(now_);
  const uint64_t wall_ns = wall_ - frame.wall_before;
  info.cpu = cpu_;
  info.cpu -= frame.before;
  info.cpu.cpu_ns = info.cpu.cpu_of(wall_ns);
  info.duration_ns = on_clock(state_.clock, wall_ns, info.cpu);
  info.self_ns = on_clock(state_.clock, frame.self_ns, frame.cpu);
  if (state_.is_corrected) {
    const uint64_t own_ns = removed_from(frame);
    const uint64_t all_ns = removed_ - frame.removed_before + own_ns;
    info.cpu.cpu_ns -= all_ns;
    if (state_.clock != ReportClock::kOffCpu) {
      info.self_ns -= own_ns;
      info.duration_ns -= all_ns;
    }
  }
  return info;
}

// ---- Frames ----------------------------------------------------------------

void FrameStack::push(uint64_t key, FunctionId function, uint16_t flags, uint64_t width) {
  // The frame is constructed at its place: copying its many words takes longer than all
  // the rest.
  Frame& frame = frames_.emplace_back();
  frame.key = key;
  frame.start_ns = now_;
  frame.wall_before = wall_;
  frame.before = cpu_;
  frame.removed_before = removed_;
  frame.gaps_before = gaps_;
  frame.width = width;
  frame.function = function;
  frame.flags = flags;
  enter_top();
}

// Puts the last frame on the stack; only its place in the tree is missing.
void FrameStack::enter_top() {
  Frame& frame = frames_.back();
  Frame& parent = frames_[frames_.size() - 2];
  depth_ += frame.width;
  if (frame.function == kUnknownFunction && parent.function == kUnknownFunction) {
    parent.width += frame.width;
    frames_.pop_back();
    return;
  }
  frame.is_own_work =
      parent.is_own_work || (frame.function != kRootFunction &&
                             frame.function == state_.resolver.functions().own_work());
  if (has_open_keys_) ++open_keys_[frame.key];
  if (decide_shown(parent, frame)) {
    frame.shown = static_cast<uint32_t>(frames_.size() - 1);
    frame.node = state_.tree.child(parent.node, frame.function);
    frame.depth = parent.depth + (is_part(frame) ? 0 : 1);
    if (phase_ == Phase::kInside) count(frame);
  } else {
    frame.shown = parent.shown;
    frame.node = parent.node;
    frame.depth = parent.depth;
  }
}

bool FrameStack::decide_shown(const Frame& parent, Frame& frame) {
  // What the kernel does for the tracer is the tracer's.
  if (parent.is_own_work) return false;
  const ReplayFilter& filter = state_.filter;
  if (filter.has_functions()) {
    const FunctionMatcher::Verdict verdict = state_.matcher.match(frame.function);
    frame.only = parent.only || verdict.only;
    frame.except = parent.except || verdict.except;
    if (frame.except || (!filter.only.empty() && !frame.only)) return false;
  }
  return parent.depth < filter.max_depth && phase_ != Phase::kAfter;
}

const RecordCost& FrameStack::cost_of(uint64_t key, FunctionId function) const {
  const uint32_t module_kind =
      has_hook_kinds_ ? state_.resolver.functions()[function].hook_kind : 0;
  return state_.costs.of_call(HookCosts::kind_of_call(key, module_kind, is_patched_));
}

void FrameStack::enter(uint64_t key, FunctionId function) {
  const RecordCost& cost = cost_of(key, function);
  charge_call_cost(frames_.back(), cost.outside_ps);
  push(key, function, 0);
  charge_call_cost(frames_.back(), cost.inside_ps);
}

void FrameStack::exit() {
  const RecordCost& cost = cost_of(frames_.back().key, frames_.back().function);
  charge_call_cost(frames_.back(), cost.inside_ps);
  leave(1, 0);
  charge_call_cost(frames_.back(), cost.outside_ps);
}

void FrameStack::charge_args_cost() {
  if (frames_.size() == 1) return;
  charge_cost(frames_.back(), state_.costs.of_args().inside_ps);
  charge_cost(frames_[frames_.size() - 2], state_.costs.of_args().outside_ps);
}

// All time of the tracer's own work is charged as it passes.
void FrameStack::charge_call_cost(const Frame& frame, uint64_t ps) {
  if (!frame.is_own_work) charge_cost(frame, ps);
}

// Notes how much of the frame's own time was recording.
void FrameStack::charge_cost(const Frame& frame, uint64_t ps) {
  if (ps == 0 || !in_range()) return;
  state_.tree[frame.node].overhead_ps += ps;
  frames_[frame.shown].overhead_ps += ps;
}

// Returns how much of the frame's own time is taken off when it is corrected. Recording
// is work of the thread itself, so none of it is time off the CPU.
uint64_t FrameStack::removed_from(const Frame& frame) const {
  if (!state_.is_corrected) return 0;
  return std::min(frame.overhead_ps / 1000, frame.cpu.cpu_of(frame.self_ns));
}

void FrameStack::leave(uint64_t count, uint16_t flags) {
  while (count > 0 && depth_ > 0) {
    Frame& top = frames_.back();
    const uint64_t left = std::min(count, top.width);
    if (!vforks_.empty() && depth_ - left < vforks_.back().lowest) {
      // The parent has not returned from the frame, and will go on in it.
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

void FrameStack::pop(uint16_t flags) {
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
    report_closed(frame, flags, shown);
    if (shown) removed_ += removed_from(frame);
  }
  frames_.pop_back();
}

void FrameStack::report_closed(const Frame& frame, uint16_t flags, bool shown) const {
  if (state_.listener == nullptr) return;
  if (!is_part(frame)) {
    state_.listener->frame_closed(info_of(frame, flags), frame.token, shown);
  } else if (shown) {
    state_.listener->part_ended(info_of(frame, flags));
  }
}

// Takes back the call of the innermost frame; its time goes to the shown frame around it.
void FrameStack::fold(const Frame& frame) {
  CallNode& node = state_.tree[frame.node];
  if (is_call(frame.flags)) --node.calls;
  node.self_ns -= frame.self_ns;
  const Frame& around = frames_[frames_.size() - 2];
  state_.tree[around.node].self_ns += frame.self_ns;
  frames_[around.shown].self_ns += frame.self_ns;
  node.overhead_ps -= frame.overhead_ps;
  state_.tree[around.node].overhead_ps += frame.overhead_ps;
  frames_[around.shown].overhead_ps += frame.overhead_ps;
  if (const uint64_t within_ns = state_.tree.marks(frame.node).begin_within_ns;
      within_ns != 0) {
    state_.tree.mark(frame.node).begin_within_ns = 0;
    state_.tree.mark(around.node).begin_within_ns += within_ns;
  }
  if (frame.cpu.empty()) return;
  state_.tree.cpu_time(frame.node) -= frame.cpu;
  state_.tree.cpu_time(around.node) += frame.cpu;
  frames_[around.shown].cpu += frame.cpu;
}

void FrameStack::mark_frame(const Frame& frame, uint16_t flags) {
  const unsigned all = unsigned{frame.flags} | flags;
  constexpr unsigned kMarked = kFrameUnwound | kFrameExitLost | kFrameEntryLost |
                               kFrameEnteredBefore | kFrameInherited | kFrameOpen;
  if ((all & kMarked) == 0) return;
  NodeMarks& marks = state_.tree.mark(frame.node);
  if ((all & kFrameUnwound) != 0) ++marks.unwound;
  if ((all & kFrameExitLost) != 0) ++marks.exit_lost;
  if ((all & kFrameOpen) != 0) ++marks.open;
  // The mark of how a resumed frame was entered has been counted already.
  if ((all & kFrameResumed) != 0) return;
  if ((all & kFrameEntryLost) != 0) ++marks.entry_lost;
  if ((all & kFrameEnteredBefore) != 0) ++marks.entered_before;
  if ((all & kFrameInherited) != 0) ++marks.inherited;
  if ((all & kFrameGuessed) != 0) ++marks.guessed;
}

bool FrameStack::is_open(uint64_t key) {
  if (frames_.size() > kSearchDepth && !has_open_keys_) {
    has_open_keys_ = true;
    for (size_t i = 1; i < frames_.size(); ++i) ++open_keys_[frames_[i].key];
  }
  if (has_open_keys_) return open_keys_.contains(key);
  return std::any_of(frames_.begin() + 1, frames_.end(),
                     [key](const Frame& frame) { return frame.key == key; });
}

void FrameStack::adopt(FunctionId function) {
  if (!in_range()) return;
  Frame& root = frames_.front();
  Frame frame{};
  frame.start_ns = first_ns_;
  frame.self_ns = root.self_ns;
  frame.cpu = root.cpu;
  frame.overhead_ps = root.overhead_ps;
  frame.width = 1;
  frame.function = function;
  frame.depth = 1;
  frame.flags = kFrameEnteredBefore;
  if (!decide_shown(root, frame)) return;
  const NodeIndex node = root.node;
  frame.node = node;
  root.node = state_.tree.put_above(node, function);
  root.self_ns = 0;
  root.cpu = {};
  root.overhead_ps = 0;
  state_.tree[root.node].calls = 1;
  ++state_.tree.mark(node).entered_before;
  if (state_.listener != nullptr) state_.listener->frame_adopted(info_of(frame, 0));
}

// ---- The kernel's frames -------------------------------------------------------

void FrameStack::push_kernel(uint64_t key, FunctionId function, uint16_t flags) {
  push(key, function, flags, 0);
  ++kernel_frames_;
}

void FrameStack::leave_kernel(uint32_t count, uint16_t flags) {
  kernel_frames_ -= count;
  for (; count > 0; --count) pop(flags);
}

// ---- The rest ------------------------------------------------------------------

void FrameStack::args(const Record& record) {
  const Frame& top = frames_.back();
  if (state_.listener == nullptr || (top.flags & kFrameCounted) == 0) return;
  state_.listener->args({thread_, top.function, top.token, event_ns(), &record});
}

void FrameStack::syscall_result(int64_t result) {
  const Frame& top = frames_.back();
  if (state_.listener == nullptr || (top.flags & kFrameCounted) == 0) return;
  const uint32_t error = syscall_errno(result);
  if (error == 0) return state_.listener->syscall_succeeded(top.token);
  const SyscallError made(error);
  Record record{};
  record.time_ns = event_ns();
  record.thread = thread_;
  record.type = ARCTRACE_TYPE_RESULT;
  record.body = made.body();
  args(record);
}

void FrameStack::point(PointInfo::Kind kind, const Record& record, FunctionId function) {
  if (state_.listener == nullptr || !in_range()) return;
  state_.listener->point(
      {kind, thread_, function, frames_.back().depth, event_ns(), &record});
}

}  // namespace arctrace::reader
