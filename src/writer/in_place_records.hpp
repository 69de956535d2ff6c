// Events whose payload the program fills in the buffer itself (arctrace_reserve), and
// then commits or discards.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/base/memory.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/writer/record.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace::writer {

// Reserves space in place for `size` payload bytes of event `event`; null if there is
// none, or the event is not recorded. `here` is the address for the writer call.
void* reserve_in_place(uint32_t event, size_t size, uintptr_t here);

// Commits the record as `keep` ? EVENT : PAD. A payload that is not this thread's is
// ignored (a fork child gets its parent's).
void end_in_place(const void* payload, bool keep);

// Pins `block`, in which the thread has a record, so that it is not recycled until
// unpin_block() or the thread's end. Returns the index of the word that names it, or
// kNotPinned if the thread pins too many. REQUIRES: another word of the thread's slot
// names the block, and the writer call is the outermost one.
inline constexpr uint32_t kNotPinned = UINT32_MAX;
uint32_t pin_block(ThreadState& state, uint32_t block);
void unpin_block(ThreadState& state, uint32_t pin);

// The fast path of records that are filled in place: it uses the first of the thread's
// places for them. Only calls that interrupt no other one take it, so plain stores take
// and release it.

// Whether the first place is free.
inline bool first_place_is_free(const ThreadState& state) {
  static_assert(InPlaceRecord::kUnused == 0);
  return is_zero(state.places[0].payload);
}

// Reserves the record in the first place, and gives its name in a shared block back;
// `payload` is the address that the program gets. A handler that jumps out before the
// last store has the block's name cleared (abandon_calls). REQUIRES:
// first_place_is_free(), and the call interrupts none.
__attribute__((always_inline)) inline void reserve_first(ThreadState& state,
                                                         const Reservation& record,
                                                         std::byte* payload) {
  InPlaceRecord& place = state.places[0];
  place.word0 = record.word0;
  place.committed = record.committed;
  // B4 release: the block is named as pinned before its shared name goes, or before its
  // owner can close it.
  IpcAtomics::store_release(state.slot.slot().held[0], record.block + 1);
  release(record);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  place.payload = reinterpret_cast<uintptr_t>(payload);
}

// Commits the record that is reserved in the first place, if its payload is this one and
// no writer call is in progress. False: nothing was done.
__attribute__((always_inline)) inline bool commit_first(const void* payload) {
  if (__builtin_expect(payload == nullptr || is_inside_writer(), 0)) return false;
  OutermostCall::begin(AtStackPointer{});
  ThreadState* const state = thread_local_state.state;
  // In a fork child that goes on with its parent's record (end_in_place) there is no
  // state.
  if (__builtin_expect(state == nullptr || !state->attached, 0)) {
    return OutermostCall::refuse();
  }
  InPlaceRecord& place = state->places[0];
  // Word 0 is read before `payload` is compared: a handler may fork, and in the child the
  // state is wiped.
  std::byte* const word0 = place.word0;
  const uint32_t committed = place.committed;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (__builtin_expect(!is_equal(place.payload, reinterpret_cast<uint64_t>(payload)),
                       0)) {
    return OutermostCall::refuse();
  }
  IpcAtomics::store_release(word_at(word0), committed);                // I1
  IpcAtomics::store_release(state->slot.slot().held[0], uint32_t{0});  // F1
  std::atomic_signal_fence(std::memory_order_seq_cst);
  place.payload = InPlaceRecord::kUnused;
  OutermostCall::end();
  return true;
}

}  // namespace arctrace::writer
