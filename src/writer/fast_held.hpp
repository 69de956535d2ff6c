// The fast path of records that are filled in place: for the first of the thread's places
// for them. Only calls that interrupt no other one take it, so that it is taken and left
// by plain stores.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/base/inlined.hpp"
#include "src/writer/reservation.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace {

// Whether the first place is free.
inline bool has_first_held(const ThreadState& state) {
  static_assert(HeldRecord::kUnused == 0);
  return is_zero(state.held[0].payload);
}

// Holds the record there, and gives its name in a shared block back; `payload` is what
// the program gets. A handler that jumps out before the last store has the block's name
// cleared (abandon_calls). REQUIRES: has_first_held(), and the call interrupts none.
__attribute__((always_inline)) inline void hold_first(ThreadState& state,
                                                      const Reservation& record,
                                                      std::byte* payload) {
  HeldRecord& held = state.held[0];
  held.word0 = record.word0;
  held.committed = record.committed;
  // B4 release: the block is named as held before its shared name goes, or before its
  // owner can close it.
  IpcAtomics::store_release(state.slot.slot().held[0], record.block + 1);
  release(record);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  held.payload = reinterpret_cast<uintptr_t>(payload);
}

// Commits the record that is held there, if its payload is this one and no writer call is
// in progress. False: nothing was done.
__attribute__((always_inline)) inline bool commit_first(const void* payload) {
  if (__builtin_expect(payload == nullptr || is_inside_writer(), 0)) return false;
  OutermostCall::begin(AtStackPointer{});
  ThreadState* const state = thread_local_state.state;
  // A fork child that goes on with its parent's record (settle_record).
  if (__builtin_expect(state == nullptr || !state->attached, 0)) {
    return OutermostCall::refuse();
  }
  HeldRecord& held = state->held[0];
  // Read before `payload` is compared: a handler may fork, and in the child the state is
  // wiped.
  std::byte* const word0 = held.word0;
  const uint32_t committed = held.committed;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (__builtin_expect(!is_equal(held.payload, reinterpret_cast<uint64_t>(payload)), 0)) {
    return OutermostCall::refuse();
  }
  IpcAtomics::store_release(word_at(word0), committed);                // I1
  IpcAtomics::store_release(state->slot.slot().held[0], uint32_t{0});  // F1
  std::atomic_signal_fence(std::memory_order_seq_cst);
  held.payload = HeldRecord::kUnused;
  OutermostCall::end();
  return true;
}

}  // namespace arctrace
