// Records that were written into the buffer, by programs or by the kernel, and for which
// the trace file had no space; and the losses that LOST records among them count.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "src/recorder/file/trace_file.hpp"

namespace arctrace::recorder {

class FileLosses {
 public:
  // Counts the user records of a block of class data, or the kernel's records of a CPU's
  // block; no records of other blocks. `block`: a copy, from its header on.
  void add_block_untrusted(std::span<const std::byte> block);

  // The number of user records that were counted; the second one includes the kernel's.
  uint64_t count() const { return count_; }
  uint64_t count_all() const { return count_ + kernel_count_; }

  // The losses for which report() would add records, by writer
  // (ARCTRACE_WRITER_COLLECTOR: of the session) and cause.
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> counts() const;
  // The kernel's records, by CPU.
  const std::map<uint32_t, uint64_t>& by_cpu() const { return by_cpu_; }

  // Adds LOST of cause file for each writer that has a block of its own among those that
  // were counted, one for the writers of shared blocks together, and one for each CPU.
  // LOST records that stood in the blocks are repeated.
  void report(RecordBuilder& records, uint64_t ticks) const;

 private:
  void add_cpu_block_untrusted(std::span<const std::byte> block);
  void add(uint32_t writer, uint32_t cause, uint64_t count, uint64_t since_ticks);

  struct Loss {
    uint64_t count = 0;
    uint64_t since_ticks = UINT64_MAX;  // of the first record
  };
  // The losses by writer (ARCTRACE_WRITER_COLLECTOR: of the session) and cause.
  std::map<std::pair<uint32_t, uint32_t>, Loss> losses_;
  std::map<uint32_t, uint64_t> by_cpu_;
  uint64_t count_ = 0;  // user records
  uint64_t kernel_count_ = 0;
};

}  // namespace arctrace::recorder
