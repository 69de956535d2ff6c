// The records of one block of full form, in order of time.
#pragma once

#include <cstdint>
#include <memory>

#include "reader/trace/block_index.hpp"
#include "reader/trace/clock_map.hpp"
#include "reader/trace/merge.hpp"

namespace arctrace::reader {

// Where other blocks of the chain may have been overwritten: then a STACK need not agree
// with the records before it.
enum class ChainGaps : uint8_t {
  kNone,
  kAnywhere,
  kBefore,  // the block is the oldest one
};

// `first_ticks` are those of the block's earliest record: the block is not copied before
// the merge gets there. All references must outlive the source.
std::unique_ptr<RecordSource> shared_source(Input& input, const BlockRef& block,
                                            uint64_t first_ticks, uint64_t order,
                                            const ClockMap& clock, ChainGaps gaps,
                                            FindingLog& findings);

}  // namespace arctrace::reader
