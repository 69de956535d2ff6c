// A Reservation is room for one record. Here it is taken in the thread's exclusive block,
// and the record begun.
#pragma once

#include <arctrace/format.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/base/inlined.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/buffer/buffer_view.hpp"
#include "src/protocol/shared_chain.hpp"
#include "src/writer/thread_local.hpp"

namespace arctrace {

// Takes back a name of the calling thread's slot: the block may be recycled from then on.
// A fork child, which may go on with a call of its parent, leaves its parent's name
// alone.
inline void release_active(uint32_t* active) {
  if (thread_local_state.state->slot.is_wiped()) return;
  SharedChain<IpcAtomics>::release(*active);
}

struct Reservation {
  std::byte* word0;  // null: nothing is reserved, and the loss is counted
  std::byte* body;
  uint32_t committed;  // word 0 of the complete record
  uint32_t block;      // index
  // In a shared block: the slot's word that names it until release(). Null: not shared.
  uint32_t* active;
  // Whose slot's first such word it is, to be found when it is needed. Null: as `active`
  // says.
  ThreadState* outermost_of;
};

inline constexpr Reservation kNoReservation{nullptr, nullptr, 0, 0, nullptr, nullptr};

// To be called after the commit, or once the record is held.
__attribute__((always_inline)) inline void release(const Reservation& record) {
  if (record.outermost_of != nullptr) {
    SharedChain<IpcAtomics>::release(record.outermost_of->slot.slot().active[0]);
  } else if (__builtin_expect(record.active != nullptr, 0)) {
    release_active(record.active);
  }
}

// The head or body at `to`, as its struct of arctrace/format/.
template <class Part>
inline Part& part_at(std::byte* to) {
  static_assert(alignof(Part) == 4);
  return *reinterpret_cast<Part*>(to);
}

// Where a compact record of `length` bytes begins in the thread's exclusive block. False:
// the block has no room. The position is read once, and before anything else of the
// state: a handler may fork, and its child, whose state is wiped, goes on here with the
// parent's record.
__attribute__((always_inline)) inline bool find_room(const ThreadState& state,
                                                     uint32_t length, std::byte*& begin) {
  begin = __atomic_load_n(&state.block.pos, __ATOMIC_RELAXED);
  // By the end of the record: in such a child the block's end is null.
  const bool has_room = reinterpret_cast<uintptr_t>(begin) + length <=
                        reinterpret_cast<uintptr_t>(state.block.end);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return has_room;
}

// The same for the fast path, in fewer instructions. It may find none for a record that
// is shorter than kShortRecord where the block's last bytes would do.
__attribute__((always_inline)) inline bool find_room_fast(const ThreadState& state,
                                                          uint32_t length,
                                                          std::byte*& begin) {
  constexpr uint32_t kShort = ExclusiveBlock::kShortRecord;
  begin = __atomic_load_n(&state.block.pos, __ATOMIC_RELAXED);
  bool has_room;
  if (__builtin_constant_p(length)) {
    has_room =
        is_above(state.block.limit, begin + (length > kShort ? length - kShort : 0));
  } else {
    has_room = is_above(state.block.end, begin + length - 1);
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return has_room;
}

// The delta of a time stamp to the block's base. A record can't hold more than
// UINT32_MAX.
inline uint64_t ticks_from_base(const ThreadState& state, uint64_t ticks) {
  return ticks - state.block.base_ticks;
}

// Begins a compact record at `begin`. REQUIRES: find_room() said that it has room there.
__attribute__((always_inline)) inline Reservation begin_compact(ThreadState& state,
                                                                std::byte* begin,
                                                                uint16_t type,
                                                                uint32_t length,
                                                                uint64_t from_base) {
  const uint32_t word0 = ARCTRACE_WORD0(type, length);
  // H1: the first store. Its length lets anyone step on from here, should the thread die
  // now; relaxed, because a reader of a live block stops at a word that is in progress.
  IpcAtomics::store_relaxed(word_at(begin), word0 | ARCTRACE_IN_PROGRESS);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  // Only now: a signal handler that jumps away here leaves no hole. `begin` is where it
  // was, or in a fork child, whose state is wiped, there is no block.
  advance(state.block.pos, length);
  part_at<arctrace_compact_head>(begin).tick_delta = static_cast<uint32_t>(from_base);
  return {begin,   begin + ARCTRACE_COMPACT_HEAD_SIZE,
          word0,   state.block.taken.index,
          nullptr, nullptr};
}

// Counts a user record that has been begun. Not before, or a death between the two would
// count a record that is nowhere. Relaxed: it is a sum that is read later. Only the
// outermost writer call gets here.
inline void count_written(ThreadState& state) {
  IpcAtomics::add_to_own_relaxed(state.slot.slot().written, 1);
}

}  // namespace arctrace
