// The fast path of nearly every record: a thread's outermost writer call, with room in
// the thread's exclusive block, by the CPU's counter. It is inlined into its callers and
// tests each of these conditions once. A thread without room there is handed over to the
// fast path of the shared chain, which is out of line.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/inlined.hpp"
#include "src/buffer/clock.hpp"
#include "src/process/gate.hpp"
#include "src/writer/reservation.hpp"
#include "src/writer/shared_records.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace {

// Where a record is written: in the thread's exclusive block, or else by
// elsewhere(state), which goes on with this writer call, and returns whether the record
// was written.
template <class Elsewhere>
struct OwnBlock {
  Elsewhere elsewhere;

  // Calls use(nesting, state, record) with a record begun that has `body_size` bytes
  // after its head, if no writer call is in progress and fits(state); `here` is the
  // address for the writer call. False: nothing was done. Nothing is called on the way,
  // and what is needed later is kept in few variables, so that the compiler saves no
  // registers. REQUIRES: fast_path_is_open().
  template <class Here, class Fits, class Use>
  __attribute__((always_inline)) bool record(Here here, uint16_t type, uint32_t body_size,
                                             const Fits& fits, const Use& use) const {
    if (__builtin_expect(is_inside_writer(), 0)) return false;
    OutermostCall::begin(here);
    ThreadState* const state = thread_local_state.state;
    if (__builtin_expect(state == nullptr, 0)) return OutermostCall::refuse();
    const uint32_t length = ARCTRACE_COMPACT_HEAD_SIZE + body_size;
    std::byte* begin;
    if (__builtin_expect(!find_room_fast(*state, length, begin), 0))
      return elsewhere(*state);
    begin = kept_beside_arguments<0>(begin);
    if (__builtin_expect(!fits(*state), 0)) return OutermostCall::refuse();
    uint32_t from_base;
    if (__builtin_expect(!read_counter_from(state->block.base_ticks, from_base), 0)) {
      return OutermostCall::refuse();
    }
    if (begin == nullptr) __builtin_unreachable();  // it has room
    const Reservation record = begin_compact(*state, begin, type, length, from_base);
    count_written(*state);
    use(Nesting::kOutermost, *state, record);
    OutermostCall::end(here);
    return true;
  }
};
template <class Elsewhere>
OwnBlock(Elsewhere) -> OwnBlock<Elsewhere>;

// For a caller that takes the slow path then.
inline constexpr auto kNowhereElse = [](ThreadState&) ARCTRACE_INLINED {
  return OutermostCall::refuse();
};

// In the session's shared chain, in the block that has this thread's STACK.
struct KnownSharedBlock {
  ThreadState& state;  // as an OwnBlock handed it over

  // As above, within the writer call that the OwnBlock has begun.
  template <class Here, class Fits, class Use>
  __attribute__((always_inline)) bool record(Here /*here*/, uint16_t type,
                                             uint32_t body_size, const Fits& fits,
                                             const Use& use) const {
    if (__builtin_expect(!fits(state), 0)) return OutermostCall::refuse();
    Reservation record;
    if (__builtin_expect(
            !reserve_in_known_block(state, type, body_size, read_counter(), record), 0)) {
      return OutermostCall::refuse();
    }
    use(Nesting::kOutermost, state, record);
    OutermostCall::end();
    return true;
  }
};

}  // namespace arctrace
