// Writes one record: inline if it fits into the thread's exclusive block, else through
// reserve_slow().
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>

#include "src/writer/commit.hpp"
#include "src/writer/reservation.hpp"
#include "src/writer/slow_path.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace {

// Calls use(record) with room for a record that has `body_size` bytes (a multiple of 4)
// after its head, stamped `ticks`. The head is written, in progress. The usual case has a
// copy of `use` to itself, in which the reservation never leaves the registers.
// REQUIRES: with a full head the record is no longer than ARCTRACE_RECORD_LENGTH_MAX.
template <class Use>
__attribute__((always_inline)) inline auto with_record(Nesting nesting, uint16_t type,
                                                       uint32_t body_size, uint64_t ticks,
                                                       const Use& use) {
  ThreadState* state = thread_local_state.state;
  if (__builtin_expect(
          state != nullptr && !nesting.nested() && state->filtered.first_waiting == 0,
          1)) {
    const uint32_t length = ARCTRACE_COMPACT_HEAD_SIZE + body_size;
    std::byte* begin;
    const bool has_room = find_room(*state, length, begin);
    const uint64_t from_base = ticks_from_base(*state, ticks);
    if (__builtin_expect(has_room && from_base <= UINT32_MAX, 1)) {
      const Reservation record = begin_compact(*state, begin, type, length, from_base);
      count_written(*state);
      return use(record);
    }
  }
  return use(reserve_slow(nesting, type, body_size, ticks));
}

// The same for a record that is finished by another call.
inline Reservation reserve(Nesting nesting, uint16_t type, uint32_t body_size,
                           uint64_t ticks) {
  return with_record(nesting, type, body_size, ticks,
                     [](const Reservation& record) { return record; });
}

// Counts a record as lost that is longer than any may be.
inline void reserve_impossible(Nesting nesting, uint64_t ticks) {
  reserve_slow(nesting, ARCTRACE_TYPE_EVENT, ARCTRACE_RECORD_LENGTH_MAX, ticks);
}

// Writes a record whose body fill(body) stores. False: it was lost.
template <class Fill>
inline bool write_record(Nesting nesting, uint16_t type, uint32_t body_size,
                         uint64_t ticks, const Fill& fill) {
  return with_record(nesting, type, body_size, ticks, [&](const Reservation& record) {
    if (__builtin_expect(record.word0 == nullptr, 0)) return false;
    fill(record.body);
    commit(record);
    return true;
  });
}

}  // namespace arctrace
