// The blocks of a trace: where they stand and what their headers say, found without
// reading the records in them.
#pragma once

#include <absl/status/statusor.h>
#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reader/trace/block_ref.hpp"
#include "reader/trace/finding_log.hpp"
#include "reader/trace/input.hpp"
#include "src/buffer/geometry.hpp"

namespace arctrace::reader {

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
