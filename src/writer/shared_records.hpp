// Reserves records in blocks that several threads write: records of signal handlers,
// records in a session with the shared scope, and definitions.
#pragma once

#include <cstdint>

#include "src/buffer/clock.hpp"
#include "src/process/process_identity.hpp"
#include "src/process/session.hpp"
#include "src/protocol/shared_chain.hpp"
#include "src/writer/opening_records.hpp"
#include "src/writer/record.hpp"

namespace arctrace::writer {

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
// one in between. No bus lock is used, because it would wait until the record's stores
// have reached a cache line that another writer has.
inline void count_written_shared(ThreadState& state) {
  IpcAtomics::add_amid_signals(state.slot.slot().written_shared, 1);
}

// Reserves the usual record in the session's shared chain: in the block that has this
// thread's STACK already, if it has space. False: there is no space, or something is to
// be written or decided before. Only for the outermost writer call.
__attribute__((always_inline)) inline bool reserve_in_known_block(ThreadState& state,
                                                                  uint16_t type,
                                                                  uint32_t body_size,
                                                                  uint64_t ticks,
                                                                  Reservation& reserved) {
  const uint32_t length = ARCTRACE_FULL_HEAD_SIZE + body_size;
  // A handler may fork, and in its child, which goes on here, the state is wiped. Slot
  // and block are read before the grant, because a wiped state has none; the other values
  // are read before the block's opening is compared, because no wiped state has one.
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

// The fast path in the session's shared chain, in the block that has this thread's STACK.
template <class Stamp = CounterStamp>
struct KnownSharedBlock {
  ThreadState& state;  // as an OwnBlock handed it over

  // As OwnBlock::record(), within the writer call that the OwnBlock has begun.
  template <class Here, class Fits, class Use>
  __attribute__((always_inline)) bool record(Here /*here*/, uint16_t type,
                                             uint32_t body_size, const Fits& fits,
                                             const Use& use) const {
    if (__builtin_expect(!fits(state), 0)) return OutermostCall::refuse();
    Reservation record;
    if (__builtin_expect(
            !reserve_in_known_block(state, type, body_size, Stamp::ticks(state), record),
            0)) {
      return OutermostCall::refuse();
    }
    use(Nesting::kOutermost, state, record);
    OutermostCall::end();
    return true;
  }
};

KnownSharedBlock(ThreadState&)->KnownSharedBlock<>;

// Whether nothing has changed since the thread found no block for the shared chain: then
// it need not search them all again.
bool is_known_full(const ThreadState& state);

// Reserves in the session's shared chain, at the time of `frames`. Outside signal
// handlers (the shared scope) a thread's first record in a block brings a STACK of that
// moment along, in one reservation.
Reservation reserve_shared(Nesting nesting, ThreadState& state, ProcessState& process,
                           uint16_t type, uint32_t body_size, const FramesState& frames);

// Writes the losses of a thread into the shared chain before its next record, in LOST
// records, and has a STACK precede that record if a change of the frames is among them.
// `frames` becomes that of the next record. False: there is no space.
bool begin_in_chain(ThreadState& state, ProcessState& process, FramesState& frames);

// Reserves a full-form record of class definitions in the process' own chain.
Reservation reserve_definition(ThreadState& state, ProcessState& process, uint16_t type,
                               uint32_t body_size, uint64_t ticks);

}  // namespace arctrace::writer
