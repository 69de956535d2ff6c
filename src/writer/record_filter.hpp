// Decides which records the writer writes at present: the classes that the gate names,
// without the records of threads and the events that the record filter excludes (SPEC.md
// FLT-2).
//
// While there is a filter, the records that it may exclude take the slow path, which asks
// here. A verdict is stored with the filter's generation: for the process, for a thread,
// for an event, and for a name of instants and counters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "src/process/gate.hpp"

namespace arctrace::writer {

// Whether the record filter admits records of the calling thread.
bool thread_is_admitted();

// Forgets the verdicts of the filter of a session that the process has left.
void forget_verdicts();

// The record filter's verdict on the event of this id. Excluded events are counted.
enum class EventVerdict : uint8_t { kExcluded, kAdmitted, kByFields };
EventVerdict event_verdict(uint32_t event);

// Whether an event with this payload meets the filter's conditions; if not, it is
// counted.
bool fields_are_admitted(uint32_t event, std::span<const std::byte> payload);

// Whether the record filter admits instants and counters whose name has this id. Excluded
// ones are counted.
bool instant_is_admitted(uint32_t name);

inline bool has_record_filter() {
  return __atomic_load_n(record_filter_number, __ATOMIC_RELAXED) != 0;
}

// Whether records of one of the classes `bits` (enum arctrace_gate_bit) are written for
// the calling thread.
inline bool is_recorded(uint32_t bits) {
  return gate_is_open(bits) && (!has_record_filter() || thread_is_admitted());
}

// Whether an event of this id is recorded; while it is not filled in, kByFields stands
// for "if its fields are admitted".
inline EventVerdict event_verdict_now(uint32_t event) {
  if (!is_recorded(ARCTRACE_GATE_EVENTS)) return EventVerdict::kExcluded;
  return has_record_filter() ? event_verdict(event) : EventVerdict::kAdmitted;
}
inline bool event_is_recorded(uint32_t event, const void* payload, size_t size) {
  const EventVerdict verdict = event_verdict_now(event);
  return verdict == EventVerdict::kAdmitted ||
         (verdict == EventVerdict::kByFields &&
          fields_are_admitted(event, {static_cast<const std::byte*>(payload), size}));
}

// Whether an instant or counter whose name has this id is recorded.
inline bool instant_is_recorded(uint32_t name) {
  return is_recorded(ARCTRACE_GATE_MARKS) &&
         (!has_record_filter() || instant_is_admitted(name));
}

}  // namespace arctrace::writer
