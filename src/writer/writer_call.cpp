#include "src/writer/writer_call.hpp"

#include "src/process/process_identity.hpp"
#include "src/process/session.hpp"
#include "src/process/work_claims.hpp"
#include "src/protocol/dead_slot.hpp"
#include "src/protocol/losses.hpp"
#include "src/protocol/reported_losses.hpp"
#include "src/stack/made_stacks.hpp"
#include "src/writer/interrupted_change.hpp"
#include "src/writer/lent_storage.hpp"
#include "src/writer/loss.hpp"

namespace arctrace {

namespace {

// In the guard: other calls have interrupted the outermost one. No address on the stack
// has this bit.
constexpr uintptr_t kInterrupted = 1;

// Whether the outermost writer call's frame is gone because a signal handler jumped out
// of it: a call that interrupts another one lies below it, or on the signal stack. So is
// one that has nothing left to do but to look at what interrupted it (end_nested()).
bool guard_is_gone(const ThreadLocal& local, uintptr_t guard, uintptr_t here) {
  using Which = ThreadStacks::Which;
  guard &= ~kInterrupted;
  if (guard == 0) return true;
  const Which stack = local.stacks.which(here);
  const Which guard_stack = local.stacks.which(guard);
  if (stack == Which::kUnknown) return false;
  return stack == guard_stack ? here >= guard
                              : stack == Which::kOwn && guard_stack == Which::kSignal;
}

// Gives up the records that calls had begun in shared blocks or in place and will never
// finish: they stay in progress, and readers step over them.
void abandon_calls(ThreadState& state) {
  arctrace_writer_slot& slot = session.view.slot(state.slot.index);
  for (uint32_t& name : slot.active) {
    DeadSlot<IpcAtomics>::settle_name(session.view, state.slot.index, name,
                                      [](uint32_t) {});
  }
  for (uint32_t i = 0; i < ARCTRACE_HELD_COUNT; ++i) {
    // An unused one may have been about to be taken by hold_first().
    if (state.held[i].payload > HeldRecord::kClaimed) continue;
    IpcAtomics::store_release(slot.held[i], uint32_t{0});
    state.held[i].payload = HeldRecord::kUnused;
  }
}

// Gives up the exclusive block, which a call was changing. A block that was being opened
// is opened by the next call that needs one, or the serials would have a gap.
void abandon_block(ThreadState& state) {
  state.block.forget();
  if (state.block.is_opening()) return;
  DeadSlot<IpcAtomics>::settle_name(session.view, state.slot.index,
                                    session.view.slot(state.slot.index).current,
                                    [](uint32_t) {});
}

// Whether readers may lack what interrupting calls have written in the chain: in
// overwrite mode its blocks may give way before those of the thread. Frames that a
// handler has entered or left, and not left or entered again, are known by a STACK only.
bool interruption_may_give_way(uintptr_t guard) {
  return (guard & kInterrupted) != 0 &&
         session.view.geometry().mode == ARCTRACE_MODE_OVERWRITE;
}

uint32_t open_frames(const ThreadLocal& local) {
  if (local.state == nullptr) return 0;
  return local.state->open.depth;
}

// The handler that made the frames has returned, so they are open no more, but their ends
// were not recorded: functions were switched off meanwhile, or it jumped within itself.
// The interrupted call has an earlier time than they, but they were counted before it.
void lose_ends_of_frames(ThreadState& state) {
  state.loss.stack_differs = true;
  count_lost(session.view.slot(state.slot.index), state, ARCTRACE_LOST_NESTED,
             session_ticks());
}

}  // namespace

Nesting WriterCall::enter_nested(uintptr_t here) {
  ThreadLocal& local = thread_local_state;
  if (storage_is_lent() && is_borrower()) return Nesting::kRefused;
  uintptr_t& guard = storage_is_lent() ? local.own_guard : local.guard;
  if (guard == 0) {
    guard = here;
    return Nesting::kOutermost;
  }
  if (is_new_process()) {
    // The call that forked may go on, here too, with the parent's block.
    leave_session();
    return Nesting::kRefused;
  }
  if (guard_is_gone(local, guard, here)) {
    ThreadState* state = local.state;
    if (state != nullptr && state->attached) {
      abandon_change(local);
      // Before the block with its LOST record can go.
      ReportedLosses<IpcAtomics>::settle(session.view,
                                         session.view.slot(state->slot.index));
      state->loss.pending = true;  // it may have been about to report them
      state->chain.take_grant_back();
      if (ProcessState* process = process_state_of_session(); process != nullptr) {
        abandon_work(*process, state->slot.writer);
      }
      abandon_calls(*state);
      if (state->calls != nullptr) state->calls->is_compacting = 0;
      if (state->loss.stack_differs || interruption_may_give_way(guard)) {
        require_stack(*state);
      }
      if (!state->block.is_open) abandon_block(*state);
      // If it was reporting the waiting calls: from the first on again.
      if (state->filtered.may_wait) state->filtered.first_waiting = 1;
    }
    abandon_stack_change();
    local.nesting = 0;
    local.nested_frames = 0;
    finish_change(local);
    local.reporting = 0;
    local.leaving = 0;
    guard = here;
    return Nesting::kOutermost;
  }
  if (local.nesting + 1 >= ARCTRACE_ACTIVE_DEPTH) {
    return Nesting::kRefused;
  }
  ++local.nesting;
  guard |= kInterrupted;
  resolve_change(local);
  if (local.nesting == 1) local.nested_frames -= open_frames(local);
  return Nesting::kNested;
}

// If a change of the open frames was lost, the outermost call is to see that at its end:
// then the count stays above 0.
void WriterCall::leave_nested() {
  ThreadLocal& local = thread_local_state;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (local.nesting == 1) local.nested_frames += open_frames(local);
  const bool differs = local.state != nullptr && local.state->loss.stack_differs;
  if (local.nesting > 1 || !differs) --local.nesting;
}

void WriterCall::end_lent() {
  ThreadLocal& local = thread_local_state;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (has_unsettled_calls()) OutermostCall::settle_nested();
  local.own_guard = 0;
}

// Signal handlers that interrupted this call's handlers have jumped, back into those, or
// nested calls have lost changes of the open frames.
void OutermostCall::settle_nested() {
  ThreadLocal& local = thread_local_state;
  if (local.state != nullptr && local.state->attached) {
    abandon_calls(*local.state);
    if (added_frames() > 0 && !local.state->loss.stack_differs) {
      lose_ends_of_frames(*local.state);
    }
    if (local.state->loss.stack_differs) require_stack(*local.state);
  }
  local.leaving = 0;
  local.nesting = 0;
  local.nested_frames = 0;
}

void OutermostCall::end_nested() {
  settle_nested();
  thread_local_state.guard = 0;
}

void Nesting::count_refused() {
  if (!session.joined) return;
  const bool has_no_slot = storage_is_lent() && is_borrower();
  count_lost_without_slot(session.view.control(),
                          has_no_slot ? ARCTRACE_LOST_NO_SLOT : ARCTRACE_LOST_NESTED);
}

}  // namespace arctrace
