// Asks the gate of the buffer whether a class of records is recorded at present.
#pragma once

#include <arctrace/arctrace.h>

#include <cstdint>

namespace arctrace {

// Whether any of the gate's `bits` (enum arctrace_gate_bit) is set.
inline bool is_recorded(uint32_t bits) { return (*arctrace_gate & bits) != 0; }

}  // namespace arctrace
