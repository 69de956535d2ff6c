// Asks the gate of the buffer whether a class of records is recorded at present.
#pragma once

#include <arctrace/arctrace.h>

#include <cstdint>

#include "src/base/inlined.hpp"
#include "src/buffer/buffer_view.hpp"

namespace arctrace {

// Whether any of the gate's `bits` (enum arctrace_gate_bit) is set.
inline bool gate_is_open(uint32_t bits) { return (*arctrace_gate & bits) != 0; }

// Points to the word of the gate that lacks the classes of which the record filter may
// exclude records, while all calls are recorded and the clock is the CPU's counter.
// Otherwise, and then for good, it points to a word that stays 0.
extern const volatile uint32_t* fast_gate;

// Whether any of the gate's bits is set, and records may take the fast path.
template <uint32_t kBits>
inline bool fast_path_is_open() {
  return has_any_bit<kBits>(*__atomic_load_n(&fast_gate, __ATOMIC_RELAXED));
}

// Points to the live filter's number in the control page, which is 0 until one is set; in
// a process without a session, to a word that stays 0.
extern const volatile uint32_t* live_filter_number;

inline bool has_live_filter() { return !is_zero(*live_filter_number); }

// Points to the record filter's number, in the same way.
extern const volatile uint32_t* record_filter_number;

// From now on all records take the slow path.
void close_fast_path();

// From now on this process records nothing.
void close_gate();

// From now on these are those of the session that the process has joined.
void open_gate(const BufferView& view, bool with_fast_path);

}  // namespace arctrace
