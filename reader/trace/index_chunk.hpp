// The index of a trace file: what its recorder noted of each chunk, so that a reader of a
// range need not look at all of them.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>

#include "reader/trace/block_index.hpp"
#include "reader/trace/record.hpp"

namespace arctrace::reader {

struct FileIndexPlace {
  uint64_t offset = 0;  // of the INDEX chunk, as the file's header has it
  bool has_checksums = false;
};

// What index_file_untrusted() finds, read from the INDEX and the chunks after it, in time
// that depends on the number of blocks only, and with the blocks' facts. nullopt if there
// is none that lists all chunks before it (a finding), or if blocks are there twice. What
// it says of a chunk may still be wrong: see is_as_indexed_untrusted(). Error: the input
// cannot be read.
absl::StatusOr<std::optional<BlockIndex>> read_index_untrusted(Input& input,
                                                               FileIndexPlace place,
                                                               const Geometry& geometry,
                                                               FindingLog& findings);

// Whether the chunk is what an index says of it, by its headers. Error: the input cannot
// be read.
absl::StatusOr<bool> is_as_indexed_untrusted(Input& input, const BlockRef& ref,
                                             const Geometry& geometry);
// The finding if it is not.
Finding index_finding(const BlockRef& block);
// The finding if the WRITERS chunks say something else of a block, or cannot be read as
// lists.
Finding writers_finding(uint64_t chunk);

// Compares the index, and the lists of writers, with `walked`, what
// index_file_untrusted() found, and with the blocks' records, and adds a finding for the
// first difference. Costs a walk over all blocks but those of the kernel. Error: the
// input cannot be read.
absl::Status check_index_untrusted(Input& input, FileIndexPlace place,
                                   const Geometry& geometry, const BlockIndex& walked,
                                   FindingLog& findings);

}  // namespace arctrace::reader
