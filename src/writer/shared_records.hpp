// Reserves records in blocks that several threads write: records of signal handlers,
// records in a session with the shared scope, and definitions.
#pragma once

#include <cstdint>

#include "src/process/process_identity.hpp"
#include "src/writer/reservation.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace {

// Whether nothing has changed since the thread found no block for the shared chain: then
// it need not search them all again.
bool is_known_full(const ThreadState& state);

// In the session's shared chain. Outside signal handlers (the shared scope) a thread's
// first record in a block brings LOST and STACK along, in one reservation.
Reservation reserve_shared(Nesting nesting, ThreadState& state, ProcessState& process,
                           uint16_t type, uint32_t body_size, uint64_t ticks);

// Losses of a thread that writes into the shared chain, as a record of their own.
void report_losses_shared(ThreadState& state, ProcessState& process, uint64_t ticks);

// Reserves a full-form record of class definitions in the process' own chain.
Reservation reserve_definition(ThreadState& state, ProcessState& process, uint16_t type,
                               uint32_t body_size, uint64_t ticks);

// Takes back the name of the block that the writer call has just written a shared record
// in.
__attribute__((noinline)) void release_shared();

}  // namespace arctrace
