// Records in the thread's own block: its change, its opening, what a time needs that the
// block's base is too far from.
#pragma once

#include <cstdint>

#include "src/writer/writer.hpp"

namespace arctrace {

// Room for a record in the thread's block or in a fresh one. REQUIRES: the outermost
// call.
Reservation reserve_exclusive(ScopeKind scope, ThreadState& state, ProcessState& process,
                              uint16_t type, uint32_t body_size, uint64_t ticks);

}  // namespace arctrace
