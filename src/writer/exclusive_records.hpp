// Reserves records in the thread's exclusive block on the slow path: changes the block,
// writes its opening records, and rebases times that are too far from the block's base.
#pragma once

#include <cstdint>

#include "src/process/process_identity.hpp"
#include "src/writer/reservation.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace {

// Finds room for a record in the thread's block or in a fresh one. REQUIRES: the writer
// call is the outermost one.
Reservation reserve_exclusive(ThreadState& state, ProcessState& process, uint16_t type,
                              uint32_t body_size, uint64_t ticks);

// OWNED -> CLOSED for the thread's exclusive block, if it has one.
void close_block(ThreadState& state);

}  // namespace arctrace
