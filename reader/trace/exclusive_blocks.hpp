// The blocks of single writers, in the order in which these filled them.
#pragma once

#include <span>
#include <vector>

#include "reader/trace/block_index.hpp"
#include "reader/trace/finding_log.hpp"
#include "reader/trace/session.hpp"

namespace arctrace::reader {

// By writer, in the order of each one's first block in `blocks`; each sorted by serial.
std::vector<std::vector<BlockRef>> group_exclusive(std::span<const BlockRef> blocks);

// Adds findings for serials of a writer's blocks that repeat, or leave one out. Missing
// blocks are no breach in overwrite mode, in a buffer, in a file that was cut off, or if
// another file has them. REQUIRES: `blocks` are of one writer, sorted, and not empty.
void check_serials(std::span<const BlockRef> blocks, const Session& session,
                   FindingLog& findings);

}  // namespace arctrace::reader
