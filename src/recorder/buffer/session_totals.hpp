// How many records a session has written and lost so far, by the counters of its slots
// and its control page. The recorders report them in their summaries and TOTALS records.
#pragma once

#include <cstdint>
#include <vector>

#include "src/buffer/buffer_view.hpp"

namespace arctrace {

// All records of the session so far, whether they are still in the buffer or not.
uint64_t session_written(const BufferView& view);

// All losses of the session so far, by cause.
std::vector<uint64_t> session_losses(const BufferView& view);

// Events, instants and counters of the session so far that the record filter left out by
// their names, levels or fields.
uint64_t session_filtered_out(const BufferView& view);

// When the session began: losses of which nothing else is known came after that.
uint64_t session_start_ticks(const BufferView& view);

// The kernel writer's losses on all CPUs.
uint64_t cpu_losses(const BufferView& view);

}  // namespace arctrace
