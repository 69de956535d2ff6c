// Which of the kernel's blocks may be missing: the first ones of a CPU that were
// overwritten, and in parts of a recording those before, between and after the ones that
// are there.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <span>
#include <vector>

#include "reader/trace/block_index.hpp"
#include "reader/trace/clock_map.hpp"
#include "reader/trace/kernel_gaps.hpp"
#include "reader/trace/record.hpp"
#include "reader/trace/record_cursor.hpp"

namespace arctrace::reader {

// The kernel's blocks have no serials. A CPU may lack some if other blocks are missing
// that were handed out before the first one that it has.
class KernelBlocks {
 public:
  // The records of a block of the kernel's, which are all of one CPU.
  void add_untrusted(const BlockRef& block, std::span<const RawRecord> records);

  // `blocks`: all that the trace has. Of the CPUs that have records; sorted by CPU.
  std::vector<CpuBegin> find_begins(std::span<const BlockRef> blocks,
                                    const ClockMap& clock) const;

  // Adds a gap of a CPU wherever a hand-out is missing that may have been of its next
  // block.
  void add_missing(std::span<const BlockRef> blocks, const ClockMap& clock,
                   KernelGaps& gaps) const;
  // Adds the gap after the last record of each CPU, whose next block is not there; one
  // of `cpu_count` that has no record may lack all of them.
  void add_ends(uint32_t cpu_count, const ClockMap& clock, KernelGaps& gaps) const;
  // The time of the last record of all CPUs; INT64_MIN: there is none.
  int64_t last_ns(const ClockMap& clock) const;

 private:
  struct Block {
    uint64_t handout, first_monotonic_ns, last_monotonic_ns;
  };
  absl::flat_hash_map<uint32_t, std::vector<Block>> blocks_;  // by CPU
};

}  // namespace arctrace::reader
