// What a recording that is cut into files has written into them, and what of that it has
// removed again: the counts of FILES records.
#pragma once

#include <arctrace/format.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/recorder/file/block_scan.hpp"

namespace arctrace {

struct FileCounts {
  uint64_t records = 0;  // committed user records
  uint64_t kernel = 0;   // the kernel's records
  // What LOST records report, in blocks and among the collector's own.
  std::array<uint64_t, ARCTRACE_LOST_CAUSES> lost{};

  void add(const BlockContents& block) {
    records += block.records;
    kernel += block.kernel;
    for (size_t cause = 0; cause < lost.size(); ++cause) lost[cause] += block.lost[cause];
  }
};

// What all files up to the end of one have, and when the next one begins.
struct FileEnd {
  uint64_t records = 0, kernel = 0, ticks = 0;
};

// The oldest files, which are not there any more.
struct RemovedFiles {
  uint32_t files = 0;
  uint64_t records = 0, kernel = 0;  // that were in them
  uint64_t until_ticks = 0;          // when the oldest file that is left begins
};

}  // namespace arctrace
