#include "src/base/memory.hpp"
#include "src/calls/call_filter.hpp"
#include "src/protocol/dead_slot.hpp"
#include "src/protocol/reported_losses.hpp"
#include "src/writer/loss.hpp"
#include "src/writer/writer.hpp"

namespace arctrace {

namespace {

// Whether the outermost writer call's frame is gone, because a signal handler jumped out
// of it: what interrupts a call and comes back lies below it, or on the signal stack.
bool guard_is_gone(const ThreadLocal& local, uintptr_t here) {
  using Which = ThreadStacks::Which;
  const Which stack = local.stacks.which(here);
  const Which guard_stack = local.stacks.which(local.guard);
  if (stack == Which::kUnknown) return false;
  return stack == guard_stack ? here >= local.guard
                              : stack == Which::kOwn && guard_stack == Which::kSignal;
}

// What calls had begun in shared blocks or in place and will never finish: it stays in
// progress, and readers step over it.
void abandon_calls(ThreadState& state) {
  arctrace_writer_slot& slot = session.view.slot(state.slot);
  for (uint32_t& name : slot.active) {
    DeadSlot<IpcAtomics>::settle_name(session.view, state.slot, name, [](uint32_t) {});
  }
  for (uint32_t i = 0; i < ARCTRACE_HELD_COUNT; ++i) {
    if (state.held[i].payload != HeldRecord::kClaimed) continue;
    IpcAtomics::store_release(slot.held[i], uint32_t{0});
    state.held[i].payload = HeldRecord::kUnused;
  }
}

// The exclusive block, which a call was changing. One that was being opened is opened by
// the next call that needs one, or the serials would have a gap.
void abandon_block(ThreadState& state) {
  state.pos = state.end = nullptr;
  if (state.is_opening()) return;
  DeadSlot<IpcAtomics>::settle_name(
      session.view, state.slot, session.view.slot(state.slot).current, [](uint32_t) {});
}

}  // namespace

namespace {

// An earlier handler had the place of the frame that the change enters: all that is known
// of it until the interrupted call stores it again is its key, from the record's end.
void forget_disturbed_frame(ThreadState& state, const StackChange& change) {
  const uint32_t length = change.committed & ARCTRACE_LENGTH_MASK;
  if (change.committed != ARCTRACE_WORD0(ARCTRACE_TYPE_ENTER, length) ||
      change.depth == 0 || change.depth > ThreadState::kMaxFrames) {
    return;
  }
  OpenFrame frame{};
  copy_bytes(&frame.key, change.word0 + length - sizeof frame.key, sizeof frame.key);
  state.frames[change.depth - 1] = frame;
}

}  // namespace

void resolve_change(ThreadLocal& local) {
  const StackChange& change = local.change;
  if (change.word0 == nullptr || local.state == nullptr ||
      IpcAtomics::load_relaxed(word_at(change.word0)) != change.committed) {
    return;
  }
  local.state->depth = change.depth;
  if (local.telling != 0) {
    local.state->filtered[local.telling - 1].telling = FilteredFrame::Telling::kTold;
    local.telling = 0;
  } else if (local.frame_disturbed) {
    forget_disturbed_frame(*local.state, change);
  }
  local.change.word0 = nullptr;
}

ScopeKind WriteScope::enter_nested(uintptr_t here) {
  if (is_new_process()) {
    // The call that forked may go on, here too, with the parent's block.
    leave_session();
    return ScopeKind::kRefused;
  }
  if (guard_is_gone(local(), here)) {
    ThreadState* state = local().state;
    if (state != nullptr && state->attached) {
      resolve_change(local());
      // Before what it is told in can go.
      ToldLosses<IpcAtomics>::settle(session.view, session.view.slot(state->slot));
      state->loss_pending = true;  // it may have been about to tell them
      abandon_calls(*state);
      if (!state->has_block) abandon_block(*state);
      // If it was telling what waits: from the first on again.
      if (call_filter.ticks_min != 0) state->first_waiting = 1;
    }
    local().nesting = 0;
    local().change.word0 = nullptr;
    local().telling = 0;
    local().guard = here;
    return ScopeKind::kOutermost;
  }
  if (local().nesting + 1 >= ARCTRACE_ACTIVE_DEPTH) {
    return ScopeKind::kRefused;
  }
  ++local().nesting;
  return ScopeKind::kNested;
}

// Handlers of this call's handlers have jumped, back into those.
void OutermostScope::abandon_nested() {
  ThreadLocal& local = thread_local_state;
  if (local.state != nullptr && local.state->attached) abandon_calls(*local.state);
  local.nesting = 0;
}

void ScopeKind::count_refused() {
  if (session.joined)
    count_lost_without_slot(session.view.control(), ARCTRACE_LOST_NESTED);
}

}  // namespace arctrace
