// Settling the slots of dead threads, as the collector: their blocks are closed, their
// end and what they had not said of their losses is said, the slot is free again.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "src/buffer_view.hpp"
#include "src/collector/record_builder.hpp"

namespace arctrace {

// Calls closed(index) for each block that was closed for its dead owner. Returns the
// processes that have a living thread, sorted. REQUIRES: the caller is the collector.
std::vector<uint32_t> reap_dead(const BufferView& view, RecordBuilder& said,
                                const std::function<void(uint32_t)>& closed);

}  // namespace arctrace
