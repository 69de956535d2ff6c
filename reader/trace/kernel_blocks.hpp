// In overwrite mode: of which CPUs the first records of the kernel may have been
// overwritten.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <span>
#include <vector>

#include "reader/trace/block_index.hpp"
#include "reader/trace/clock_map.hpp"
#include "reader/trace/record.hpp"
#include "reader/trace/record_cursor.hpp"

namespace arctrace::reader {

// The kernel's blocks have no serials. A CPU may lack some if other blocks are missing
// that were handed out before the first one that it has.
class KernelBlocks {
 public:
  // The records of a block of the kernel's, which are all of one CPU.
  void add_untrusted(const BlockRef& block, std::span<const RawRecord> records);

  // `blocks`: all that the trace has. Sorted by CPU.
  std::vector<CpuBegin> find_begins(std::span<const BlockRef> blocks,
                                    const ClockMap& clock) const;

 private:
  struct First {
    uint64_t handout, monotonic_ns;
  };
  absl::flat_hash_map<uint32_t, First> first_;  // by CPU
};

}  // namespace arctrace::reader
