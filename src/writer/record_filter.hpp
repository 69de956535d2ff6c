// What the writer writes at present: the classes that the gate names, without the
// records of threads and the events that the record filter excludes (SPEC.md FLT-2).
//
// While there is a filter, the records that it may exclude take the slow path, which asks
// here. A verdict is remembered with the filter's round: for the process, for a thread,
// for an event, and for a name of instants and counters.
#pragma once

#include <cstdint>

#include "src/process/gate.hpp"

namespace arctrace {

// Whether the record filter admits records of the calling thread.
bool thread_is_admitted();

// Forgets what was remembered of the filter of a session that the process has left.
void forget_verdicts();

// Whether the record filter admits the event of this id, and instants and counters whose
// name has this id.
bool event_is_admitted(uint32_t event);
bool instant_is_admitted(uint32_t name);

inline bool has_record_filter() {
  return __atomic_load_n(record_filter_number, __ATOMIC_RELAXED) != 0;
}

// Whether records of one of the classes `bits` (enum arctrace_gate_bit) are written of
// the calling thread.
inline bool is_recorded(uint32_t bits) {
  return gate_is_open(bits) && (!has_record_filter() || thread_is_admitted());
}

// The same for the event of this id.
inline bool event_is_recorded(uint32_t event) {
  return is_recorded(ARCTRACE_GATE_EVENTS) &&
         (!has_record_filter() || event_is_admitted(event));
}

// And for an instant or counter whose name has this id.
inline bool instant_is_recorded(uint32_t name) {
  return is_recorded(ARCTRACE_GATE_MARKS) &&
         (!has_record_filter() || instant_is_admitted(name));
}

}  // namespace arctrace
