// Threads that have records and no definition.
#pragma once

#include <span>
#include <vector>

#include "reader/trace/block_index.hpp"
#include "reader/trace/clock_map.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/finding_log.hpp"
#include "reader/trace/session.hpp"
#include "reader/trace/shared_writers.hpp"

namespace arctrace::reader {

// Adds a thread for each writer in `exclusive` (group_exclusive()) or `shared` that
// `definitions` lack, and its process; a finding for each where these had to be there.
// The threads of the kernel's records have no definitions, and lead to none. Last comes a
// thread for each CPU that has served interrupts.
void add_unknown_writers(std::span<const std::vector<BlockRef>> exclusive,
                         const SharedWriters& shared, const Session& session,
                         const ClockMap& clock, Definitions& definitions,
                         FindingLog& findings);

}  // namespace arctrace::reader
