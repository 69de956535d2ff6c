// Reserves records in the session's shared chain, and definitions in the process' own.
#include "src/writer/shared_records.hpp"

#include "src/protocol/losses.hpp"
#include "src/protocol/shared_chain.hpp"
#include "src/writer/opening_records.hpp"

namespace arctrace::writer {
namespace {

// The slot's word in which the calling writer call names a block.
uint32_t* own_active(ThreadState& state) {
  return &state.slot.slot().active[thread_local_state.nesting];
}

// Lets the fast path write the bytes that the thread may write into the chain before the
// next decision. It does not if a loss is to be recorded first, also one of a handler
// that comes in between.
void grant_chain_bytes(ThreadState& state) {
  ChainPosition& chain = state.chain;
  const uint32_t max = record_length_max(session.view.geometry());
  const uint32_t granted = chain.budget < max ? chain.budget : max;
  chain.budget -= granted;
  chain.granted = granted;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (state.loss.pending) chain.take_grant_back();
}

// The size of a STACK record that lists only the innermost frames.
constexpr uint32_t kShortStackRecordSpace = stack_body_size(4);

// Whether readers may not know the frames further out from an earlier STACK, or would
// have to read far back for it. With many threads, each record may be its writer's first
// in a block.
bool needs_whole_stack(const ThreadState& state, uint32_t generation, uint64_t ticks) {
  return state.chain.block == 0 || state.chain.stack_generation != generation ||
         (ticks > state.chain.stack_ticks &&
          ticks - state.chain.stack_ticks > session.ticks_per_second / 8) ||
         session.view.geometry().mode == ARCTRACE_MODE_OVERWRITE;
}

// Reserves in the session's chain; while the free blocks are reserved for definitions,
// only in its open block. The record is null if there is no space.
SharedReservation reserve_data(ThreadState& state, ProcessState& process, uint32_t length,
                               uint64_t ticks) {
  uint64_t& chain = session.view.control().shared_current;
  if (Handout<IpcAtomics>::rest_is_for_definitions(session.view)) {
    uint32_t& active = *own_active(state);
    const SharedReservation got = SharedChain<IpcAtomics>::reserve_in(
        session.view, active, IpcAtomics::load_acquire(chain), length);
    if (got.record == nullptr) release_active(&active);
    return got;
  }
  return SharedChain<IpcAtomics>::reserve(
      session.view, state.slot.index, thread_local_state.nesting, chain, length,
      block_identity(state, process, ARCTRACE_FORM_FULL, ARCTRACE_CLASS_DATA, ticks));
}

}  // namespace

bool is_known_full(const ThreadState& state) {
  return is_known_empty(state) &&
         state.loss.full_chain ==
             IpcAtomics::load_relaxed(session.view.control().shared_current);
}

Reservation reserve_shared(Nesting nesting, ThreadState& state, ProcessState& process,
                           uint16_t type, uint32_t body_size, const FramesState& frames) {
  const uint64_t ticks = frames.ticks;
  arctrace_control& control = session.view.control();
  arctrace_writer_slot& slot = session.view.slot(state.slot.index);
  const uint32_t length = ARCTRACE_FULL_HEAD_SIZE + body_size;
  const uint32_t max = record_length_max(session.view.geometry());
  if (length > max) {
    count_lost(slot, state, ARCTRACE_LOST_TOO_BIG, ticks);
    return kNoReservation;
  }
  const uint64_t freed = IpcAtomics::load_relaxed(control.freed);
  const uint64_t chain = IpcAtomics::load_relaxed(control.shared_current);
  StackReport stack{};
  uint32_t stack_length = 0;
  const bool is_first = state.chain.block == 0 || state.chain.block != chain;
  const uint32_t generation = IpcAtomics::load_relaxed(control.definitions_round);
  const bool is_whole = needs_whole_stack(state, generation, ticks);
  if (!nesting.nested() && is_first) {
    stack = reportable_frames(state, frames.open,
                              is_whole ? stack_record_space() : kShortStackRecordSpace);
    stack_length = ARCTRACE_FULL_HEAD_SIZE + stack_body_size(state, stack.count);
    if (stack_length + length > max) stack_length = 0;
  }
  const SharedReservation got =
      reserve_data(state, process, stack_length + length, ticks);
  if (got.record == nullptr) {
    note_no_block(state, freed);
    state.loss.full_chain = chain;
    wake_past_mark();
    count_lost(slot, state, ARCTRACE_LOST_FULL, ticks);
    return kNoReservation;
  }
  std::byte* begin = got.record;
  if (!nesting.nested() && !is_first && got.name != chain &&
      session.view.geometry().mode == ARCTRACE_MODE_OVERWRITE) {
    // The chain has moved on, and the new block may be the first that is reserved for
    // definitions.
    IpcAtomics::store_release(word_at(begin), ARCTRACE_WORD0(ARCTRACE_TYPE_PAD, length));
    release_active(own_active(state));
    state.chain.leave_block();  // the next record comes with a STACK in any case, once
    return reserve_shared(nesting, state, process, type, body_size, frames);
  }
  if (stack_length != 0) {
    const uint32_t word0 = ARCTRACE_WORD0(ARCTRACE_TYPE_STACK, stack_length);
    fill_full_head(begin, word0, state.slot.writer, ticks);
    fill_stack(begin + ARCTRACE_FULL_HEAD_SIZE, state, stack);
    IpcAtomics::store_release(word_at(begin), word0);
    begin += stack_length;
    state.chain.block = got.name;
    if (is_whole) {
      state.chain.stack_generation = generation;
      state.chain.stack_ticks = ticks;
    }
  }
  const uint32_t word0 = ARCTRACE_WORD0(type, length);
  fill_full_head(begin, word0, state.slot.writer, ticks);
  if (got.opened) wake_past_mark();
  count_written_shared(state);
  if (!nesting.nested() && state.chain.block == got.name &&
      SharedChain<IpcAtomics>::know(session.view, got.name, state.chain.known)) {
    grant_chain_bytes(state);
  }
  return {begin,  begin + ARCTRACE_FULL_HEAD_SIZE, word0, got.index, own_active(state),
          nullptr};
}

bool begin_in_chain(ThreadState& state, ProcessState& process, FramesState& frames) {
  constexpr uint32_t kLength = ARCTRACE_FULL_HEAD_SIZE + sizeof(arctrace_lost_body);
  arctrace_writer_slot& slot = session.view.slot(state.slot.index);
  if (state.loss.stack_differs) state.chain.leave_block();
  const OpeningState opening = opening_state(state, frames.ticks);
  frames = opening.frames;
  const bool all =
      report_own_losses(slot, state, opening.losses, [&](const Losses& losses) {
        const SharedReservation got = reserve_data(state, process, kLength, frames.ticks);
        if (got.record == nullptr) return false;
        const uint32_t word0 = ARCTRACE_WORD0(ARCTRACE_TYPE_LOST, kLength);
        fill_full_head(got.record, word0, state.slot.writer, frames.ticks);
        fill_lost(got.record + ARCTRACE_FULL_HEAD_SIZE, losses, opening.since_ticks);
        ReportedLosses<IpcAtomics>::commit(session.view, slot, losses.cause, losses.until,
                                           got.record, word0);
        release_active(own_active(state));
        if (got.opened) wake_past_mark();
        return true;
      });
  if (!all) put_off_losses(state, opening);
  return all;
}

Reservation reserve_definition(ThreadState& state, ProcessState& process, uint16_t type,
                               uint32_t body_size, uint64_t ticks) {
  const uint32_t length = ARCTRACE_FULL_HEAD_SIZE + body_size;
  const SharedReservation got = SharedChain<IpcAtomics>::reserve(
      session.view, state.slot.index, thread_local_state.nesting,
      process.definitions_chain, length,
      block_identity(state, process, ARCTRACE_FORM_FULL, ARCTRACE_CLASS_DEFINITIONS,
                     ticks));
  if (got.record == nullptr) {
    wake_past_mark();
    return kNoReservation;
  }
  const uint32_t word0 = ARCTRACE_WORD0(type, length);
  fill_full_head(got.record, word0, state.slot.writer, ticks);
  if (got.opened) wake_past_mark();
  return {got.record,
          got.record + ARCTRACE_FULL_HEAD_SIZE,
          word0,
          got.index,
          own_active(state),
          nullptr};
}

}  // namespace arctrace::writer
