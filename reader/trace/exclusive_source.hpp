// The records of one writer's exclusive blocks, in the order in which it wrote them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "reader/trace/block_index.hpp"
#include "reader/trace/merge.hpp"
#include "reader/trace/read_plan.hpp"

namespace arctrace::reader {

// `blocks` are sorted by serial, and not all are passed over. The source ends early when
// the emitter is past the thread's part of its range. Input, blocks and findings must
// outlive the source. At any time it holds a window of one block.
std::unique_ptr<RecordSource> exclusive_source(Input& input,
                                               std::span<const BlockRef> blocks,
                                               ThreadIndex thread,
                                               const SkippedBlocks& skipped,
                                               uint64_t order, FindingLog& findings);

}  // namespace arctrace::reader
