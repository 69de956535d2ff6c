// Reserves records in blocks that several threads write: records of signal handlers,
// records in a session with the shared scope, and definitions.
#pragma once

#include <cstdint>

#include "src/process/process_identity.hpp"
#include "src/process/session.hpp"
#include "src/protocol/shared_chain.hpp"
#include "src/writer/opening_records.hpp"
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
  IpcAtomics::add_amid_signals(state.slot.slot().written_shared, 1);
}

// Reserves in the session's shared chain what most records need: room in the block in
// which this thread's STACK stands already. False: there is none, or something is to be
// written or decided before. Only for the outermost writer call.
__attribute__((always_inline)) inline bool reserve_in_known_block(ThreadState& state,
                                                                  uint16_t type,
                                                                  uint32_t body_size,
                                                                  uint64_t ticks,
                                                                  Reservation& reserved) {
  const uint32_t length = ARCTRACE_FULL_HEAD_SIZE + body_size;
  // A handler may fork, and in its child, which goes on here, the state is wiped. Slot
  // and block are read before the grant, of which a wiped state has none; what else is
  // needed, before the block's opening is compared, which no wiped state has.
  uint32_t& active = state.slot.slot().active[0];
  arctrace_block_header* const header =
      __atomic_load_n(&state.chain.known.header, __ATOMIC_RELAXED);
  const uint32_t name = __atomic_load_n(&state.chain.known.name, __ATOMIC_RELAXED);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (__builtin_expect(!IpcAtomics::subtract_amid_signals(state.chain.granted, length),
                       0)) {
    state.chain.take_grant_back(length);
    return false;
  }
  const uint32_t writer = __atomic_load_n(&state.slot.writer, __ATOMIC_RELAXED);
  if (header == nullptr) __builtin_unreachable();  // there is a grant
  std::byte* const record = SharedChain<IpcAtomics>::reserve_in_known(
      *header, name, state.chain.known.opening, active, session.words_per_block, length);
  if (__builtin_expect(record == nullptr, 0)) {
    state.chain.take_grant_back(length);
    SharedChain<IpcAtomics>::release(state.slot.slot().active[0]);
    return false;
  }
  const uint32_t word0 = ARCTRACE_WORD0(type, length);
  fill_full_head(record, word0, writer, ticks);
  count_written_shared(state);
  reserved = {record, record + ARCTRACE_FULL_HEAD_SIZE, word0, name - 1, nullptr, &state};
  return true;
}

// Whether nothing has changed since the thread found no block for the shared chain: then
// it need not search them all again.
bool is_known_full(const ThreadState& state);

// In the session's shared chain, at the time of `moment`. Outside signal handlers (the
// shared scope) a thread's first record in a block brings a STACK of that moment along,
// in one reservation.
Reservation reserve_shared(Nesting nesting, ThreadState& state, ProcessState& process,
                           uint16_t type, uint32_t body_size, const FramesMoment& moment);

// Before the record of a thread that has lost records, in the shared chain: reports the
// losses in records of their own, and has a STACK precede that record if a change of the
// frames is among them. `moment` becomes that of what follows. False: there is no room.
bool begin_in_chain(ThreadState& state, ProcessState& process, FramesMoment& moment);

// Reserves a full-form record of class definitions in the process' own chain.
Reservation reserve_definition(ThreadState& state, ProcessState& process, uint16_t type,
                               uint32_t body_size, uint64_t ticks);

}  // namespace arctrace
