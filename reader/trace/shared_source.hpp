// The records of one block of full form, in order of time.
#pragma once

#include <cstdint>
#include <memory>

#include "reader/trace/block_index.hpp"
#include "reader/trace/clock_map.hpp"
#include "reader/trace/merge.hpp"

namespace arctrace::reader {

// `first_ticks` are those of the block's earliest record: the block is not copied before
// the merge gets there. `may_follow_gap`: other blocks may have been overwritten, so that
// a STACK need not agree with the records before it. All references must outlive the
// source.
std::unique_ptr<RecordSource> shared_source(Input& input, const BlockRef& block,
                                            uint64_t first_ticks, uint64_t order,
                                            const ClockMap& clock, bool may_follow_gap,
                                            FindingLog& findings);

}  // namespace arctrace::reader
