// Records in blocks that threads share: of signal handlers, of the shared scope, and
// definitions.
#pragma once

#include <cstdint>

#include "src/writer/writer.hpp"

namespace arctrace {

// Whether nothing has changed since the thread found no block for the shared chain: then
// it need not search them all again.
bool is_known_full(const ThreadState& state);

// In the session's shared chain. Outside signal handlers (the shared scope) a thread's
// first record in a block brings LOST and STACK along, in one reservation.
Reservation reserve_shared(ScopeKind scope, ThreadState& state, ProcessState& process,
                           uint16_t type, uint32_t body_size, uint64_t ticks);

// Losses of a thread that writes into the shared chain, as a record of their own.
void tell_losses_shared(ScopeKind scope, ThreadState& state, ProcessState& process,
                        uint64_t ticks);

}  // namespace arctrace
