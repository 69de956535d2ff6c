// What a session records, as whoever may write to its buffer changes it: by the gate, the
// two filters and the demand for definitions in the control page (SPEC.md FLT-1, FLT-2).
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>

#include "src/buffer/buffer_view.hpp"

namespace arctrace {

// Sets what is recorded: enum arctrace_gate_bit. 0 stops all writers at their next
// record.
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
// file does not have the earlier ones. They do so with their next block; so the chain, in
// whose open block they would go on, gets another one.
void demand_definitions(const BufferView& view);

}  // namespace arctrace
