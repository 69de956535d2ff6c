// What the slots and counters of a buffer say of its writers.
#pragma once

#include <cstdint>

#include "reader/trace/buffer_state.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/emitter.hpp"
#include "reader/trace/session.hpp"
#include "reader/trace/session_totals.hpp"
#include "reader/trace/writer_fates.hpp"

namespace arctrace::reader {

// A writer is alive if it holds a slot. REQUIRES: all threads are in `definitions`.
void settle_by_slots(const BufferState& buffer, Session& session,
                     Definitions& definitions, WriterFates& fates);

// A thread that has written records since a call began to wait has reported or left the
// call: what a copy of the buffer has of it is older than that.
void drop_reported_calls(const SessionTotals& totals, Definitions& definitions);

// Emits LOST records, as the collector would have, for the losses that a buffer's
// counters have and no LOST record in it reports. `chunk`: what their place shall be.
// False: the sink wants no more.
bool emit_unreported_losses(const BufferState& buffer, const Session& session,
                            uint64_t chunk, Emitter& emitter);

}  // namespace arctrace::reader
