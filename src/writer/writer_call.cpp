// Handles nested writer calls, calls that a signal handler's jump abandoned, and shared
// thread-local storage.
#include "src/writer/writer_call.hpp"

#include "src/os/kernel_use.hpp"
#include "src/process/process_identity.hpp"
#include "src/process/session.hpp"
#include "src/process/work_claims.hpp"
#include "src/protocol/block_state.hpp"
#include "src/protocol/losses.hpp"
#include "src/stack/coroutine_stacks.hpp"
#include "src/writer/loss.hpp"

namespace arctrace::writer {

namespace {

// Word 0 for an entry without a record. It is never committed.
uint32_t no_record = ARCTRACE_WORD0(ARCTRACE_TYPE_ENTER, ARCTRACE_COMPACT_HEAD_SIZE) |
                     ARCTRACE_IN_PROGRESS;

uint32_t word0_of(const StackChange& change) {
  return IpcAtomics::load_relaxed(word_at(change.word0));
}
bool is_committed(const StackChange& change) {
  return (word0_of(change) & ARCTRACE_IN_PROGRESS) == 0;
}

// Whether the change in progress adds a frame.
bool is_entering(const ThreadLocal& local) {
  if (local.change.word0 == nullptr || local.reporting != 0) return false;
  const uint32_t word0 = word0_of(local.change) & ~ARCTRACE_IN_PROGRESS;
  return word0 >> ARCTRACE_TYPE_SHIFT == ARCTRACE_TYPE_ENTER;
}

// Removes the frame with index `at`, whose entry was not recorded. Frames further in are
// of handlers, and recorded: they stay open until their end is noticed.
void take_back_frame(ThreadState& state, uint32_t at) {
  OpenFrames& open = state.open;
  for (uint32_t i = at; i + 1 < open.stored(); ++i) {
    open.frames[i] = open.frames[i + 1];
    state.filtered.frames[i] = state.filtered.frames[i + 1];
  }
  open.depth = open.depth.previous();
}

}  // namespace

StackChange unrecorded_enter(uint32_t depth) {
  return {reinterpret_cast<std::byte*>(&no_record), depth};
}

void resolve_change(ThreadLocal& local) {
  const StackChange& change = local.change;
  if (change.word0 == nullptr || local.state == nullptr) return;
  ThreadState& state = *local.state;
  if (is_committed(change)) {
    state.open.depth = change.depth;
    if (local.reporting != 0) {
      state.filtered.frames[local.reporting - 1].reporting =
          FilteredFrame::Reporting::kReported;
      local.reporting = 0;
    }
    finish_change(local);
  } else if (is_entering(local) && state.open.depth + 1 == change.depth) {
    // The interrupted call is about to count its frame.
    state.open.forget_cfa(state.open.depth);
    state.open.depth = change.depth;
  }
}

void abandon_change(ThreadLocal& local) {
  resolve_change(local);
  if (local.state != nullptr && is_entering(local)) {
    take_back_frame(*local.state, local.change.depth - 1);
  }
  finish_change(local);
  local.reporting = 0;
}

namespace {

constexpr uintptr_t kSharedGuard = 1;  // no stack pointer

void mark_shared(ThreadLocal& local, uint32_t owner) {
  if (local.owner == 0) local.own_guard = 0;
  local.owner = owner;
  local.guard = kSharedGuard;
}

}  // namespace

void share_storage() {
  ThreadLocal& local = thread_local_state;
  // In a signal handler that interrupts a writer call the guard is that call's.
  if (!may_call_kernel() || local.owner != 0 || local.guard != 0) return;
  mark_shared(local, thread_id());
}

bool is_borrower() {
  ThreadLocal& local = thread_local_state;
  if (is_new_process()) {
    local.owner = 0;
    local.guard = local.own_guard;
    return false;
  }
  return may_call_kernel() && thread_id() != local.owner;
}

bool detect_borrower(uintptr_t stack_pointer) {
  // A stack is hardly smaller, and one that lies across the border costs two system
  // calls.
  constexpr uintptr_t kWindow = uintptr_t{1} << 14;
  ThreadLocal& local = thread_local_state;
  const uintptr_t window = stack_pointer & ~(kWindow - 1);
  if (local.owner != 0 || local.is_vforking || window == local.window_of_thread ||
      local.stacks.own.contains(stack_pointer) || local.state == nullptr ||
      !local.state->attached || !may_call_kernel() || is_new_process()) {
    return false;
  }
  if (thread_id() == local.state->slot.tid) {
    local.window_of_thread = window;
    return false;
  }
  mark_shared(local, local.state->slot.tid);
  return true;
}

namespace {

// The bit in the guard: other calls have interrupted the outermost one. No address on the
// stack has this bit.
constexpr uintptr_t kInterrupted = 1;

// Whether the outermost writer call's frame is gone because a signal handler jumped out
// of it: a call that interrupts another one lies below it, or on the signal stack. A call
// that only has to check what interrupted it (end_nested()) is below it, too.
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

// Abandons the records that calls had begun in shared blocks or in place and will never
// finish: they stay in progress, and readers step over them.
void abandon_calls(ThreadState& state) {
  arctrace_writer_slot& slot = session.view.slot(state.slot.index);
  for (uint32_t& name : slot.active) {
    DeadSlot<IpcAtomics>::close_named(session.view, state.slot.index, name,
                                      [](uint32_t) {});
  }
  for (uint32_t i = 0; i < ARCTRACE_HELD_COUNT; ++i) {
    // reserve_first() may have been about to take an unused place.
    if (state.places[i].payload > InPlaceRecord::kClaimed) continue;
    IpcAtomics::store_release(slot.held[i], uint32_t{0});
    state.places[i].payload = InPlaceRecord::kUnused;
  }
}

// Abandons the exclusive block, which a call was changing. A block that was being opened
// is opened by the next call that needs one, or the serials would have a gap.
void abandon_block(ThreadState& state) {
  state.block.forget();
  if (state.block.is_opening()) return;
  DeadSlot<IpcAtomics>::close_named(session.view, state.slot.index,
                                    session.view.slot(state.slot.index).current,
                                    [](uint32_t) {});
}

// Whether readers may lack records that interrupting calls have written in the chain: in
// overwrite mode its blocks may be overwritten before those of the thread. Frames that a
// handler has entered and not left, or left and not entered again, are known by a STACK
// only.
bool interruption_may_give_way(uintptr_t guard) {
  return (guard & kInterrupted) != 0 &&
         session.view.geometry().mode == ARCTRACE_MODE_OVERWRITE;
}

uint32_t open_frames(const ThreadLocal& local) {
  if (local.state == nullptr) return 0;
  return local.state->open.depth;
}

// The handler that entered the frames has returned, so they are open no more, but their
// ends were not recorded: functions were switched off meanwhile, or it jumped within
// itself. The interrupted call has an earlier time than they, but they were counted
// before it.
void lose_ends_of_frames(ThreadState& state) {
  state.loss.stack_differs = true;
  count_lost(session.view.slot(state.slot.index), state, ARCTRACE_LOST_NESTED,
             session_ticks());
}

}  // namespace

Nesting WriterCall::enter_nested(uintptr_t here) {
  ThreadLocal& local = thread_local_state;
  if (storage_is_shared() && is_borrower()) return Nesting::kRefused;
  uintptr_t& guard = storage_is_shared() ? local.own_guard : local.guard;
  if (guard == 0) {
    guard = here;
    return Nesting::kOutermost;
  }
  if (is_new_process()) {
    // The call that forked may go on in this process, too, with the parent's block.
    leave_session();
    return Nesting::kRefused;
  }
  if (guard_is_gone(local, guard, here)) {
    ThreadState* state = local.state;
    if (state != nullptr && state->attached) {
      abandon_change(local);
      // This comes before the block with the thread's LOST record can go.
      ReportedLosses<IpcAtomics>::update(session.view,
                                         session.view.slot(state->slot.index));
      state->loss.pending = true;  // the call may have been about to write LOST records
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
      // If the call was recording the waiting calls, this begins with the first one
      // again.
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

// If a change of the open frames was lost, the outermost call has to see that at its end,
// so the count stays above 0.
void WriterCall::leave_nested() {
  ThreadLocal& local = thread_local_state;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (local.nesting == 1) local.nested_frames += open_frames(local);
  const bool differs = local.state != nullptr && local.state->loss.stack_differs;
  if (local.nesting > 1 || !differs) --local.nesting;
}

void WriterCall::end_shared() {
  ThreadLocal& local = thread_local_state;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (has_unresolved_calls()) OutermostCall::resolve_nested();
  local.own_guard = 0;
}

// Handles that signal handlers which interrupted this call's handlers have jumped back
// into those, or that nested calls have lost changes of the open frames.
void OutermostCall::resolve_nested() {
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
  resolve_nested();
  thread_local_state.guard = 0;
}

void Nesting::count_refused() {
  if (!session.joined) return;
  const bool has_no_slot = storage_is_shared() && is_borrower();
  count_lost_without_slot(session.view.control(),
                          has_no_slot ? ARCTRACE_LOST_NO_SLOT : ARCTRACE_LOST_NESTED);
}

}  // namespace arctrace::writer
