// Changes what a session records, for any process that may write to its buffer: the gate,
// the two filters and the demand for definitions in the control page (SPEC.md FLT-1,
// FLT-2). Also counts what it has recorded.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>
#include <vector>

#include "src/buffer/buffer_view.hpp"

namespace arctrace::recorder {

// Sets which classes are recorded: enum arctrace_gate_bit. 0 stops all writers at their
// next record.
void set_gate(const BufferView& view, uint32_t bits);

// Puts a record filter (SPEC.md FLT-2) into force; an empty one admits all.
// ResourceExhausted: it is longer than the control page allows. Aborted: another process
// sets one at the same time.
absl::Status set_record_filter(const BufferView& view, const std::string& text);

// Puts a live filter (SPEC.md FLT-1) into force; with an empty text the filters with
// which the programs were started hold. The session's programs apply it to each function
// and scope from its next call on. REQUIRES: the text fits into the control page.
// Aborted: another process sets one at the same time.
absl::Status publish_live_filter(const BufferView& view, const std::string& text);

// Stops all writers because the recording ends: unlike set_gate(0) it is not among the
// changes from which ENABLED records are made.
void close_gate(const BufferView& view);

// Has all processes and threads write their definitions once more, for a collector whose
// file does not have the earlier ones. They do so with their next block; so the chain
// gets another open block, because they would go on in the present one.
void demand_definitions(const BufferView& view);

// How many records a session has written and lost so far, by the counters of its slots
// and its control page. The recorders report them in their summaries and TOTALS records.

// All records of the session so far, whether they are still in the buffer or not.
uint64_t session_written(const BufferView& view);

// All losses of the session so far, by cause.
std::vector<uint64_t> session_losses(const BufferView& view);

// Events, instants and counters of the session so far that the record filter excluded by
// their names, levels or fields.
uint64_t session_filtered_out(const BufferView& view);

// When the session began: losses of which nothing else is known came after that.
uint64_t session_start_ticks(const BufferView& view);

// The kernel writer's losses on all CPUs.
uint64_t cpu_losses(const BufferView& view);

}  // namespace arctrace::recorder
