// Finds which of the kernel's blocks may be missing: the first ones of a CPU that were
// overwritten, and in parts of a recording the blocks before, between and after those
// that the parts have.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <span>
#include <vector>

#include "reader/trace/block_index.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/recorded_times.hpp"
#include "reader/trace/session.hpp"

namespace arctrace::reader {

// The kernel's blocks have no serials. A CPU may lack some if blocks are missing that
// were handed out before the first one that it has.
class KernelBlocks {
 public:
  // Adds the records of a block of the kernel's, which are all of one CPU.
  void add_untrusted(const BlockRef& block, std::span<const RawRecord> records);

  // `blocks`: all blocks of the trace. Returns the begins of the CPUs that have records,
  // sorted by CPU.
  std::vector<CpuBegin> find_begins(std::span<const BlockRef> blocks,
                                    const ClockMap& clock) const;

  // Adds a gap of a CPU wherever a hand-out is missing that may have been its next block.
  void add_missing(std::span<const BlockRef> blocks, const ClockMap& clock,
                   KernelGaps& gaps) const;
  // Adds the gap after the last record of each CPU, whose next block is missing; a CPU of
  // `cpu_count` that has no record may lack all of them.
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
