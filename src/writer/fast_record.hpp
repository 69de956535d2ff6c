// The fast path of nearly every record: a thread's outermost writer call, with room in
// the thread's exclusive block, by the CPU's counter. It is inlined into its callers and
// tests each of these conditions once. Threads that write into the shared chain have a
// fast path of their own, which is tried after it, out of line.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/buffer/clock.hpp"
#include "src/process/gate.hpp"
#include "src/writer/reservation.hpp"
#include "src/writer/shared_records.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace {

// In the thread's exclusive block.
struct OwnBlock {
  // False: nothing was done. Nothing is called on the way, and what is needed later is
  // kept in few variables, so that the compiler saves no registers.
  template <class Fits>
  __attribute__((always_inline)) static bool begin(ThreadState& state, uint16_t type,
                                                   uint32_t body_size, const Fits& fits,
                                                   Reservation& record) {
    const uint32_t length = ARCTRACE_COMPACT_HEAD_SIZE + body_size;
    std::byte* begin;
    if (__builtin_expect(!find_room(state, length, begin) || !fits(state), 0)) {
      return false;
    }
    uint32_t from_base;
    if (__builtin_expect(!read_counter_from(state.block.base_ticks, from_base), 0)) {
      return false;
    }
    if (begin == nullptr) __builtin_unreachable();  // it has room
    record = begin_compact(state, begin, type, length, from_base);
    count_written(state);
    return true;
  }
};

// In the session's shared chain, in the block that has this thread's STACK.
struct KnownSharedBlock {
  template <class Fits>
  __attribute__((always_inline)) static bool begin(ThreadState& state, uint16_t type,
                                                   uint32_t body_size, const Fits& fits,
                                                   Reservation& record) {
    if (!fits(state)) return false;
    record = reserve_in_known_block(state, type, body_size, read_counter());
    return record.word0 != nullptr;
  }
};

// Calls use(nesting, state, record) with a record begun in Room that has `body_size`
// bytes after its head, if no writer call is in progress and fits(state); `here` is the
// address for the writer call. False: nothing was done. REQUIRES: fast_path_is_open().
template <class Room, class Fits, class Use>
__attribute__((always_inline)) inline bool record_fast(uintptr_t here, uint16_t type,
                                                       uint32_t body_size,
                                                       const Fits& fits, const Use& use) {
  if (__builtin_expect(is_inside_writer(), 0)) return false;
  OutermostCall writer_call(here);
  ThreadState* state = thread_local_state.state;
  if (__builtin_expect(state == nullptr, 0)) return writer_call.refuse();
  Reservation record;
  if (__builtin_expect(!Room::begin(*state, type, body_size, fits, record), 0)) {
    return writer_call.refuse();
  }
  use(writer_call, *state, record);
  return true;
}

}  // namespace arctrace
