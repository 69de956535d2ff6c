#include "src/writer.hpp"

#include "src/attach.hpp"
#include "src/call_filter.hpp"
#include "src/confinement.hpp"
#include "src/definitions.hpp"
#include "src/loss.hpp"
#include "src/protocol/shared_chain.hpp"
#include "src/protocol/told_losses.hpp"
#include "src/wake_word.hpp"

namespace arctrace {

thread_local constinit ThreadLocal thread_local_state{};

namespace {

constexpr Reservation kNothing{nullptr, nullptr, 0, 0, false};
constexpr uint32_t kLostBody = 24;
constexpr uint32_t kStackFixedBody = 8;

const BufferView& view() { return session.view; }

BlockIdentity identity(const ThreadState& state, const ProcessState& process,
                       arctrace_block_form form, arctrace_block_class block_class,
                       uint64_t ticks) {
  return {form,        block_class, state.writer, process.id,
          process.pid, state.tid,   state.serial, ticks};
}

// Frames that a STACK record of at most `room` bytes of body can tell.
uint32_t tellable_frames(const ThreadState& state, uint32_t room) {
  const uint32_t told = told_frames(state, state.depth);
  if (told > ThreadState::kMaxFrames) return 0;
  const uint32_t fit = room < kStackFixedBody ? 0 : (room - kStackFixedBody) / 8;
  return told < fit ? told : fit;
}

// STACK may take a quarter of a block, so that deep stacks leave room for records.
uint32_t stack_room() {
  return (view().geometry().block_size - ARCTRACE_BLOCK_HEADER_SIZE) / 4;
}

void fill_stack(std::byte* body, const ThreadState& state, uint32_t count) {
  store_u32(body, told_frames(state, state.depth));
  store_u32(body + 4, count);
  uint32_t left = count;
  for (uint32_t i = state.depth; left > 0; --i) {
    if (!frame_is_told(state, i - 1)) continue;
    --left;
    store_u64(body + kStackFixedBody + uint64_t{left} * 8, state.frames[i - 1].key);
  }
}

// Appends to the exclusive block if there is room. REQUIRES: ticks - base fits 32 bits.
Reservation append(ThreadState& state, uint16_t type, uint32_t body_size,
                   uint64_t ticks) {
  const uint32_t length = ARCTRACE_COMPACT_HEAD_SIZE + body_size;
  std::byte* place;
  if (!find_place(state, length, place)) return kNothing;
  return begin_compact(state, place, type, length, ticks_from_base(state, ticks));
}

// In order with the changes of the block that it frames, for a signal handler between.
void set_has_block(ThreadState& state, bool value) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  state.has_block = value;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

void fill_lost(std::byte* body, const Losses& losses, const ThreadState& state) {
  store_u32(body, losses.cause);
  store_u32(body + 4, losses.flags);
  store_u64(body + 8, losses.count);
  store_u64(body + 16, state.lost_since_ticks);
}

// LOST and STACK at the start of a fresh exclusive block, leaving `keep` bytes free.
void write_opening(ThreadState& state, uint32_t keep, uint64_t ticks) {
  const auto room = [&] { return static_cast<uint32_t>(state.end - state.pos); };
  if (state.loss_pending) {
    const uint32_t stack_min = ARCTRACE_COMPACT_HEAD_SIZE + kStackFixedBody;
    state.loss_pending = false;  // what is lost meanwhile sets it again
    arctrace_writer_slot& slot = view().slot(state.slot);
    const bool all = tell_own_losses(slot, state, [&](const Losses& losses) {
      if (room() < ARCTRACE_COMPACT_HEAD_SIZE + kLostBody + stack_min + keep)
        return false;
      const Reservation lost = append(state, ARCTRACE_TYPE_LOST, kLostBody, ticks);
      fill_lost(lost.body, losses, state);
      ToldLosses<IpcAtomics>::commit(view(), slot, losses.cause, losses.until, lost.word0,
                                     lost.committed);
      return true;
    });
    if (!all) state.loss_pending = true;
  }
  uint32_t left = room() - ARCTRACE_COMPACT_HEAD_SIZE;
  left = left > keep ? left - keep : 0;
  if (left > stack_room()) left = stack_room();
  if (left < kStackFixedBody) left = kStackFixedBody;
  const uint32_t count = tellable_frames(state, left);
  const Reservation stack =
      append(state, ARCTRACE_TYPE_STACK, kStackFixedBody + count * 8, ticks);
  if (stack.word0 == nullptr) return;
  fill_stack(stack.body, state, count);
  IpcAtomics::store_release(word_at(stack.word0), stack.committed);
}

// Past the high-water mark: one writer wakes the collector, at most once a round.
void wake_past_mark() {
  arctrace_control& control = view().control();
  const uint32_t mark = IpcAtomics::load_relaxed(control.high_water_blocks);
  if (mark == 0 || !may_call_kernel() || IpcAtomics::load_relaxed(control.wake) != 0) {
    return;
  }
  const uint64_t used =
      IpcAtomics::load_relaxed(control.taken) - IpcAtomics::load_relaxed(control.freed);
  if (used >= mark) wake_collector(control);
}

// Whether no block has become free since the thread found none: then it need not ask.
bool is_known_empty(const ThreadState& state) {
  return state.freed_seen == IpcAtomics::load_relaxed(view().control().freed) + 1;
}

// Takes a block to be opened. False: there is none.
bool take_block(ThreadState& state) {
  const uint64_t freed = IpcAtomics::load_relaxed(view().control().freed);
  arctrace_writer_slot& slot = view().slot(state.slot);
  const auto taken = Handout<IpcAtomics>::take(view(), state.slot, slot.current);
  wake_past_mark();
  if (!taken) {
    state.freed_seen = freed + 1;  // 0 means: ask
    return false;
  }
  state.freed_seen = 0;
  state.block = *taken;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  state.opening = state.serial + 1;
  return true;
}

struct Opening {
  std::byte* end;
  bool has_stack;
};

// What stands already in a block that we own and are opening: a call that never came back
// may have begun it.
Opening opening_of(std::byte* block, uint32_t size) {
  uint32_t offset = ARCTRACE_BLOCK_HEADER_SIZE;
  bool has_stack = false;
  while (offset < size) {
    const uint32_t word0 = IpcAtomics::load_relaxed(word_at(block + offset));
    if (word0 == ARCTRACE_FILL) break;
    const uint32_t length = word0 & ARCTRACE_LENGTH_MASK;
    if (length == 0 || length % 4 != 0 || length > size - offset)
      return {block + size, true};
    has_stack = word0 == ARCTRACE_WORD0(ARCTRACE_TYPE_STACK, length);
    offset += length;
  }
  return {block + offset, has_stack};
}

// A fresh exclusive block with room for `keep` bytes behind its opening records.
bool change_block(ScopeKind scope, ThreadState& state, ProcessState& process,
                  uint32_t keep, uint64_t ticks) {
  close_block(state);
  if (!state.is_opening() && is_known_empty(state)) return false;
  const uint64_t freed = IpcAtomics::load_relaxed(view().control().freed);
  // First: what stood in a block without them, nobody could tell the meaning of.
  if (!emit_definitions(scope, state, process)) {
    state.freed_seen = freed + 1;
    return false;
  }
  if (!state.is_opening() && !take_block(state)) return false;
  state.base_ticks = ticks;
  Handout<IpcAtomics>::open(
      view(), state.block,
      identity(state, process, ARCTRACE_FORM_COMPACT, ARCTRACE_CLASS_DATA, ticks));
  std::byte* block = view().block(state.block.index);
  const uint32_t size = view().geometry().block_size;
  const Opening begun = opening_of(block, size);
  state.pos = begun.end;
  state.end = block + size;
  if (!begun.has_stack) write_opening(state, keep, ticks);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  ++state.serial;  // open
  set_has_block(state, true);
  return true;
}

// A record of its own that rebases the ticks. False: no room in this block.
bool rebase(ThreadState& state, uint32_t keep, uint64_t ticks) {
  constexpr uint32_t kTimeLength = ARCTRACE_COMPACT_HEAD_SIZE + 8;
  std::byte* place;
  if (!find_place(state, kTimeLength + keep, place)) return false;
  set_has_block(state, false);
  // As late as its own stamp can say: behind what is before it, not behind what follows.
  const Reservation time =
      append(state, ARCTRACE_TYPE_TIME, 8, state.base_ticks + UINT32_MAX);
  store_u64(time.body, ticks);
  IpcAtomics::store_release(word_at(time.word0), time.committed);
  state.base_ticks = ticks;
  set_has_block(state, true);
  return true;
}

Reservation reserve_exclusive(ScopeKind scope, ThreadState& state, ProcessState& process,
                              uint16_t type, uint32_t body_size, uint64_t ticks) {
  const uint32_t length = ARCTRACE_COMPACT_HEAD_SIZE + body_size;
  arctrace_writer_slot& slot = view().slot(state.slot);
  const uint32_t opening = ARCTRACE_COMPACT_HEAD_SIZE + kStackFixedBody;
  const uint32_t space =
      view().geometry().block_size - ARCTRACE_BLOCK_HEADER_SIZE - opening;
  if (length > space || length > ARCTRACE_RECORD_LENGTH_MAX) {
    count_lost(slot, state, ARCTRACE_LOST_TOO_BIG, ticks);
    return kNothing;
  }
  if (state.has_block) {
    // A clock that went back (a migration between unsynchronised CPUs) reads as no time.
    if (static_cast<int64_t>(ticks - state.base_ticks) < 0) ticks = state.base_ticks;
    if (ticks_from_base(state, ticks) <= UINT32_MAX || rebase(state, length, ticks)) {
      const Reservation record = append(state, type, body_size, ticks);
      if (record.word0 != nullptr) {
        count_written(state);
        return record;
      }
    }
  }
  // In a block whose opening was taken up again there may be less room; a second one has
  // it, unless somebody writes where he must not.
  constexpr int kTries = 2;
  for (int tries = 0;
       tries < kTries && change_block(scope, state, process, length, ticks); ++tries) {
    const Reservation record = append(state, type, body_size, ticks);
    if (record.word0 != nullptr) {
      count_written(state);
      return record;
    }
  }
  count_lost(slot, state, ARCTRACE_LOST_FULL, ticks);
  return kNothing;
}

void fill_full_head(std::byte* place, uint32_t word0, uint32_t writer, uint64_t ticks) {
  IpcAtomics::store_relaxed(word_at(place), word0 | ARCTRACE_IN_PROGRESS);  // H1
  std::atomic_signal_fence(std::memory_order_seq_cst);
  word_at(place + 4) = writer;
  store_u64(place + 8, ticks);
}

// Whether nothing has changed since the thread found no block for the shared chain: then
// it need not search them all again.
bool is_known_full(const ThreadState& state) {
  return is_known_empty(state) &&
         state.full_chain == IpcAtomics::load_relaxed(view().control().shared_current);
}

// In the session's shared chain. Outside signal handlers (the shared scope) a thread's
// first record in a block brings LOST and STACK along, in one reservation.
Reservation reserve_shared(ScopeKind scope, ThreadState& state, ProcessState& process,
                           uint16_t type, uint32_t body_size, uint64_t ticks) {
  arctrace_control& control = view().control();
  arctrace_writer_slot& slot = view().slot(state.slot);
  const uint32_t length = ARCTRACE_FULL_HEAD_SIZE + body_size;
  const uint32_t max = record_length_max(view().geometry());
  if (length > max) {
    count_lost(slot, state, ARCTRACE_LOST_TOO_BIG, ticks);
    return kNothing;
  }
  if (is_known_full(state)) {
    count_lost(slot, state, ARCTRACE_LOST_FULL, ticks);
    return kNothing;
  }
  const uint64_t freed = IpcAtomics::load_relaxed(control.freed);
  const uint64_t chain = IpcAtomics::load_relaxed(control.shared_current);
  uint32_t stack_count = 0;
  uint32_t stack_length = 0;
  const bool is_first = state.shared_block == 0 || state.shared_block != chain;
  if (!scope.nested() && is_first) {
    stack_count = tellable_frames(state, stack_room());
    stack_length = ARCTRACE_FULL_HEAD_SIZE + kStackFixedBody + stack_count * 8;
    if (stack_length + length > max) stack_length = 0;
  }
  const SharedReservation got = SharedChain<IpcAtomics>::reserve(
      view(), state.slot, scope.local().nesting, control.shared_current,
      stack_length + length,
      identity(state, process, ARCTRACE_FORM_FULL, ARCTRACE_CLASS_DATA, ticks));
  if (got.place == nullptr) {
    state.freed_seen = freed + 1;
    state.full_chain = chain;
    wake_past_mark();
    count_lost(slot, state, ARCTRACE_LOST_FULL, ticks);
    return kNothing;
  }
  std::byte* place = got.place;
  if (!scope.nested() && !is_first && got.name != chain &&
      view().geometry().mode == ARCTRACE_MODE_OVERWRITE) {
    // The chain has moved on, and the new block may be the first of what is kept.
    IpcAtomics::store_release(word_at(place), ARCTRACE_WORD0(ARCTRACE_TYPE_PAD, length));
    release_shared(scope);
    state.shared_block = 0;  // with a STACK now, whatever the chain does: once only
    return reserve_shared(scope, state, process, type, body_size, ticks);
  }
  if (stack_length != 0) {
    const uint32_t word0 = ARCTRACE_WORD0(ARCTRACE_TYPE_STACK, stack_length);
    fill_full_head(place, word0, state.writer, ticks);
    fill_stack(place + ARCTRACE_FULL_HEAD_SIZE, state, stack_count);
    IpcAtomics::store_release(word_at(place), word0);
    place += stack_length;
    state.shared_block = got.name;
  }
  const uint32_t word0 = ARCTRACE_WORD0(type, length);
  fill_full_head(place, word0, state.writer, ticks);
  if (got.opened) wake_past_mark();
  IpcAtomics::fetch_add_relaxed(slot.written_shared, uint64_t{1});
  return {place, place + ARCTRACE_FULL_HEAD_SIZE, word0, got.index, true};
}

// Losses of a thread that writes into the shared chain, as a record of their own.
void tell_losses_shared(ScopeKind scope, ThreadState& state, ProcessState& process,
                        uint64_t ticks) {
  constexpr uint32_t kLength = ARCTRACE_FULL_HEAD_SIZE + kLostBody;
  arctrace_writer_slot& slot = view().slot(state.slot);
  state.loss_pending = false;  // what is lost meanwhile sets it again
  const bool all = tell_own_losses(slot, state, [&](const Losses& losses) {
    const SharedReservation got = SharedChain<IpcAtomics>::reserve(
        view(), state.slot, scope.local().nesting, view().control().shared_current,
        kLength,
        identity(state, process, ARCTRACE_FORM_FULL, ARCTRACE_CLASS_DATA, ticks));
    if (got.place == nullptr) return false;
    const uint32_t word0 = ARCTRACE_WORD0(ARCTRACE_TYPE_LOST, kLength);
    fill_full_head(got.place, word0, state.writer, ticks);
    fill_lost(got.place + ARCTRACE_FULL_HEAD_SIZE, losses, state);
    ToldLosses<IpcAtomics>::commit(view(), slot, losses.cause, losses.until, got.place,
                                   word0);
    release_shared(scope);
    if (got.opened) wake_past_mark();
    return true;
  });
  if (!all) state.loss_pending = true;
}

}  // namespace

ThreadState* attached_thread(ScopeKind scope, uint64_t ticks) {
  ThreadState* state = scope.local().state;
  if (state != nullptr && state->attached) return state;
  // Attaching twice at once would take two slots: a handler that interrupts it gives up.
  return scope.nested() ? nullptr : attach_thread(scope, ticks);
}

void attach_this_thread() {
  const WriteScope scope;
  if (!session.joined || scope.nested() || scope.refused()) return;
  attached_thread(scope, session_ticks());
}

ThreadState* recording_thread(ScopeKind scope, uint64_t ticks) {
  ThreadState* state = attached_thread(scope, ticks);
  if (state == nullptr) {
    count_lost_without_slot(
        view().control(), scope.nested() ? ARCTRACE_LOST_NESTED : ARCTRACE_LOST_NO_SLOT);
  }
  return state;
}

Reservation reserve_slow(ScopeKind scope, uint16_t type, uint32_t body_size,
                         uint64_t ticks) {
  if (!session.joined || scope.refused()) return kNothing;
  ThreadState* state = recording_thread(scope, ticks);
  if (state == nullptr) return kNothing;
  ProcessState* process = current_process(ticks);
  if (process == nullptr) return kNothing;
  if (state->first_waiting != 0 && !scope.nested()) tell_all_calls(scope, *state);
  if (scope.nested() || view().geometry().scope == ARCTRACE_SCOPE_SHARED) {
    if (!is_known_full(*state)) {
      if (state->loss_pending && !scope.nested()) {
        tell_losses_shared(scope, *state, *process, ticks);
      }
      if (!emit_definitions(scope, *state, *process)) {
        count_lost(view().slot(state->slot), *state, ARCTRACE_LOST_FULL, ticks);
        return kNothing;
      }
    }
    return reserve_shared(scope, *state, *process, type, body_size, ticks);
  }
  return reserve_exclusive(scope, *state, *process, type, body_size, ticks);
}

Reservation reserve_definition(ScopeKind scope, ThreadState& state, ProcessState& process,
                               uint16_t type, uint32_t body_size, uint64_t ticks) {
  const uint32_t length = ARCTRACE_FULL_HEAD_SIZE + body_size;
  const SharedReservation got = SharedChain<IpcAtomics>::reserve(
      view(), state.slot, scope.local().nesting, process.definitions_chain, length,
      identity(state, process, ARCTRACE_FORM_FULL, ARCTRACE_CLASS_DEFINITIONS, ticks));
  if (got.place == nullptr) {
    wake_past_mark();
    return kNothing;
  }
  const uint32_t word0 = ARCTRACE_WORD0(type, length);
  fill_full_head(got.place, word0, state.writer, ticks);
  if (got.opened) wake_past_mark();
  return {got.place, got.place + ARCTRACE_FULL_HEAD_SIZE, word0, got.index, true};
}

void release_shared(ScopeKind scope) {
  SharedChain<IpcAtomics>::release(view(), scope.local().state->slot,
                                   scope.local().nesting);
}

void close_block(ThreadState& state) {
  if (!state.has_block) return;
  set_has_block(state, false);
  state.pos = state.end = nullptr;
  Handout<IpcAtomics>::close(view(), state.block);
}

}  // namespace arctrace
