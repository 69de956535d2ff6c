// Asks the gate of the buffer whether a class of records is recorded at present.
#pragma once

#include <arctrace/arctrace.h>
#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>

#include "src/base/memory.hpp"
#include "src/buffer/buffer_view.hpp"

namespace arctrace::writer {

// Whether any of the gate's `bits` (enum arctrace_gate_bit) is set.
inline bool gate_is_open(uint32_t bits) { return (*arctrace_gate & bits) != 0; }

// The part of the control page that the fast path reads.
struct FastGate {
  uint32_t gate;  // lacks the classes of which the record filter may exclude records
  uint32_t between[(ARCTRACE_LIVE_FILTER_OFFSET - ARCTRACE_CONTROL_OFFSET -
                    offsetof(arctrace_control, unfiltered)) /
                       sizeof(uint32_t) -
                   1];
  uint32_t live_filter_number;  // 0 until there is one

  static const volatile FastGate& of(const BufferView& view) {
    return *reinterpret_cast<const volatile FastGate*>(&view.control().unfiltered);
  }
};
static_assert(offsetof(arctrace_control, unfiltered) +
                  offsetof(FastGate, live_filter_number) ==
              ARCTRACE_LIVE_FILTER_OFFSET - ARCTRACE_CONTROL_OFFSET +
                  offsetof(arctrace_live_filter, round));

// Points to the FastGate of the buffer while all calls are recorded and the clock is the
// CPU's counter. Otherwise, and then for good, it points to zeros.
extern __attribute__((visibility("hidden"))) const volatile FastGate* fast_gate;

// Points to the FastGate of the buffer while there is a filter of calls and fast_gate or
// word_gate would point there without it. Otherwise it points to zeros.
extern __attribute__((visibility("hidden"))) const volatile FastGate* filtered_gate;

// Points to the FastGate of the buffer while there is no filter of calls and the session
// has a clock word. Otherwise it points to zeros.
extern __attribute__((visibility("hidden"))) const volatile FastGate* word_gate;

// The gates as they are now, to be asked several questions.
inline const volatile FastGate& current_fast_gate() {
  return *__atomic_load_n(&fast_gate, __ATOMIC_RELAXED);
}
inline const volatile FastGate& current_filtered_gate() {
  return *__atomic_load_n(&filtered_gate, __ATOMIC_RELAXED);
}

inline const volatile FastGate& current_word_gate() {
  return *__atomic_load_n(&word_gate, __ATOMIC_RELAXED);
}

// Whether any of the gate's bits is set, and records may take the fast path.
template <uint32_t kBits>
inline bool fast_path_is_open(const volatile FastGate& gate = current_fast_gate()) {
  return has_any_bit<kBits>(gate.gate);
}

// Whether functions may take the fast path, and there is no live filter.
inline bool is_open_for_all_functions() {
  const volatile FastGate& gate = current_fast_gate();
  return fast_path_is_open<ARCTRACE_GATE_FUNCTIONS>(gate) &&
         is_zero(gate.live_filter_number);
}

// Whether records may take the fast path by the clock word.
template <uint32_t kBits>
inline bool word_path_is_open() {
  return has_any_bit<kBits>(current_word_gate().gate);
}

// The same for functions; and there is no live filter.
inline bool word_path_is_open_for_all_functions() {
  const volatile FastGate& gate = current_word_gate();
  return has_any_bit<ARCTRACE_GATE_FUNCTIONS>(gate.gate) &&
         is_zero(gate.live_filter_number);
}

// Points to the live filter's number in the control page, which is 0 until one is set; in
// a process without a session, to a word that stays 0.
extern const volatile uint32_t* live_filter_number;

// Points to the record filter's number, as live_filter_number does to the live filter's.
extern const volatile uint32_t* record_filter_number;

// From now on all records take the slow path.
void close_fast_path();

// From now on records of calls may take the path of filtered calls
// (src/calls/filtered_path.hpp), and none the fast path. Any thread may call it, while
// others record.
void filter_fast_path();

// From now on this process records nothing.
void close_gate();

// From now on the gate and the filters' numbers are those of the session that the process
// has joined, and its records may take the fast path by the CPU's counter or by the clock
// word, or that of filtered calls, if one of the two is the clock. `clock`: as
// Session::clock.
void open_gate(const BufferView& view, uint32_t clock, bool is_filtered);

}  // namespace arctrace::writer
