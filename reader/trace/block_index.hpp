// The blocks of a trace: where they stand and what their headers say, found without
// reading the records in them.
#pragma once

#include <absl/status/statusor.h>
#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reader/trace/finding_log.hpp"
#include "reader/trace/input.hpp"
#include "src/buffer/geometry.hpp"

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

// The payload of a SYMBOLS or WRITERS chunk.
struct SymbolsRef {
  uint64_t chunk = 0;   // chunk sequence
  uint64_t offset = 0;  // of the payload in the input
  uint32_t size = 0;
};

struct BlockIndex {
  std::vector<BlockRef> blocks;  // in the order of the input; each hand-out once
  std::vector<SymbolsRef> symbols;
  std::vector<SymbolsRef> writers;  // the WRITERS chunks of a file
  // Where a chunk can be appended: after the last whole one that is not of SYMBOLS.
  uint64_t end = ARCTRACE_HEADER_SIZE;
  uint32_t next_sequence = 0;
  uint64_t bytes = 0;         // of all chunks or blocks in use
  bool ends_early = false;    // the input is cut off, or damaged to its end
  bool lacks_middle = false;  // of several files, one before the last ends early
};

// Fills in `ref` from `header`, a private copy. False, with a finding, if `header` is not
// a block's. REQUIRES: ref.chunk is set.
bool read_block_header_untrusted(const arctrace_block_header& header,
                                 const Geometry& geometry, uint64_t block_index,
                                 BlockRef& ref, FindingLog& findings);

// Copies the bytes from `begin` of a block's image to `out` and returns how many: fewer
// if the input has shrunk (a finding), none if the block was recycled since it was
// indexed. Error: the input cannot be read.
absl::StatusOr<size_t> copy_block_untrusted(Input& input, const BlockRef& ref,
                                            uint32_t begin, std::span<std::byte> out,
                                            FindingLog& findings);

// Of what an index is: in the parts of a recording, each part begins with copies of the
// definitions that the part before had.
enum class DoublesOf : uint8_t { kFile, kParts };

// Keeps one block of each hand-out, the longest: a block that a collector copied and did
// not free before it died is copied again by the next collector.
void drop_doubles(BlockIndex& index, DoublesOf of, FindingLog& findings);

}  // namespace arctrace::reader
