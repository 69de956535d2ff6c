// One block of a trace: where it stands and what its header says.
#pragma once

#include <arctrace/format.h>

#include <cstdint>

namespace arctrace::reader {

// One block, or one RECORDS chunk of a file, whose header has been checked.
struct BlockRef {
  enum class Kind : uint8_t {
    kExclusive,    // compact form: one writer
    kShared,       // full form: any writer
    kDefinitions,  // full form
    kCollector,    // a RECORDS chunk: no block header, full form
  };

  uint64_t chunk = 0;   // chunk sequence, or block index in a buffer
  uint64_t offset = 0;  // of the image in the input
  uint32_t size = 0;    // bytes of the image that there are
  Kind kind = Kind::kExclusive;
  bool cut = false;        // the input ends inside it
  bool live = false;       // copied, or to be copied, while its writers were alive
  bool in_buffer = false;  // not in a file: the block may be recycled while it is read
  bool changes = false;    // in a buffer that has writers: they may write into it, too
  uint16_t flags = 0;      // ARCTRACE_CHUNK_*
  uint16_t facts = 0;      // ARCTRACE_FACT_*; 0 until they are found
  uint32_t writer = 0, process = 0, pid = 0, tid = 0;
  uint64_t serial = 0, handout = 0, base_ticks = 0;
  uint64_t written_ticks = 0;  // of its chunk, in a file

  // Whether the kernel wrote it: then its ticks are CLOCK_MONOTONIC ns.
  bool of_kernel() const {
    return kind == Kind::kShared && writer == ARCTRACE_WRITER_KERNEL;
  }
  // Whether its header says the same as that of `other`.
  bool has_header_of(const BlockRef& other) const {
    return kind == other.kind && writer == other.writer && process == other.process &&
           pid == other.pid && tid == other.tid && serial == other.serial &&
           handout == other.handout && base_ticks == other.base_ticks;
  }
  // Where the records begin.
  uint32_t records_offset() const {
    return kind == Kind::kCollector ? 0 : ARCTRACE_BLOCK_HEADER_SIZE;
  }
};

}  // namespace arctrace::reader
