// Reserves records in blocks that several threads write: records of signal handlers,
// records in a session with the shared scope, and definitions.
#pragma once

#include <cstdint>

#include "src/process/process_identity.hpp"
#include "src/process/session.hpp"
#include "src/protocol/shared_chain.hpp"
#include "src/writer/reservation.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace {

// Begins a record in full form at `begin`, which is reserved.
inline void fill_full_head(std::byte* begin, uint32_t word0, uint32_t writer,
                           uint64_t ticks) {
  IpcAtomics::store_relaxed(word_at(begin), word0 | ARCTRACE_IN_PROGRESS);  // H1
  std::atomic_signal_fence(std::memory_order_seq_cst);
  auto& head = part_at<arctrace_full_head>(begin);
  head.writer = writer;
  head.ticks = ticks;
}

// Counts a user record that has been begun in a shared block. A signal handler may count
// one in between. Without a bus lock, which would wait until the record's stores have
// reached a cache line that another writer holds.
inline void count_written_shared(ThreadState& state) {
  IpcAtomics::add_to_own_and_handlers_relaxed(state.slot.written_shared(), uint64_t{1});
}

// Reserves in the session's shared chain what most records need: room in the block in
// which this thread's STACK stands already. A null record: there is none, or something is
// to be written before. Only for the outermost writer call.
__attribute__((always_inline)) inline Reservation reserve_in_known_block(
    ThreadState& state, uint16_t type, uint32_t body_size, uint64_t ticks) {
  uint64_t& chain = session.view.control().shared_current;
  const uint32_t length = ARCTRACE_FULL_HEAD_SIZE + body_size;
  // Each is read once: a handler may fork, and in its child the state is wiped.
  uint32_t* const active = __atomic_load_n(&state.slot.active, __ATOMIC_RELAXED);
  const uint32_t writer = __atomic_load_n(&state.slot.writer, __ATOMIC_RELAXED);
  const uint64_t block = __atomic_load_n(&state.chain.block, __ATOMIC_RELAXED);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  // E1 acquire: the named block's header is visible.
  if (block == 0 || active == nullptr || IpcAtomics::load_acquire(chain) != block ||
      state.loss.pending || length > state.chain.left) {
    return kNoReservation;
  }
  const SharedReservation got =
      SharedChain<IpcAtomics>::reserve_in(session.view, *active, block, length);
  if (__builtin_expect(got.record == nullptr, 0)) {
    release_active(active);
    return kNoReservation;
  }
  const uint32_t word0 = ARCTRACE_WORD0(type, length);
  // The child of a handler that forked before this: the room is not its parent's record.
  if (__builtin_expect(__atomic_load_n(&state.slot.active, __ATOMIC_RELAXED) == nullptr,
                       0)) {
    IpcAtomics::store_release(word_at(got.record),
                              ARCTRACE_WORD0(ARCTRACE_TYPE_PAD, length));  // I1 release
    return kNoReservation;
  }
  state.chain.left -= length;
  fill_full_head(got.record, word0, writer, ticks);
  count_written_shared(state);
  return {got.record, got.record + ARCTRACE_FULL_HEAD_SIZE, word0, got.index, active};
}

// Whether nothing has changed since the thread found no block for the shared chain: then
// it need not search them all again.
bool is_known_full(const ThreadState& state);

// In the session's shared chain. Outside signal handlers (the shared scope) a thread's
// first record in a block brings LOST and STACK along, in one reservation.
Reservation reserve_shared(Nesting nesting, ThreadState& state, ProcessState& process,
                           uint16_t type, uint32_t body_size, uint64_t ticks);

// Losses of a thread that writes into the shared chain, as a record of their own. False:
// there is no room for it.
bool report_losses_shared(ThreadState& state, ProcessState& process, uint64_t ticks);

// Reserves a full-form record of class definitions in the process' own chain.
Reservation reserve_definition(ThreadState& state, ProcessState& process, uint16_t type,
                               uint32_t body_size, uint64_t ticks);

}  // namespace arctrace
