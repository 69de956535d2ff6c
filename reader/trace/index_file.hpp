// The blocks of a trace file, found by its chunk headers.
#pragma once

#include <absl/status/statusor.h>

#include "reader/trace/block_index.hpp"

namespace arctrace::reader {

// Both headers of a BLOCK chunk, so that most chunks take one read.
struct ChunkStart {
  arctrace_chunk_header chunk;
  arctrace_block_header block;
};

// Whether the chunk's size is one that its kind can have. True for kinds that are not
// known.
bool has_possible_size(const arctrace_chunk_header& chunk, const Geometry& geometry);

// Breaches of the rules about chunks and blocks lead to findings. Error: the input cannot
// be read. `verifies_checksums` costs a reading of the whole file.
absl::StatusOr<BlockIndex> index_file_untrusted(Input& input, const Geometry& geometry,
                                                FindingLog& findings,
                                                bool verifies_checksums);

// Adds the chunks from the place `from` on, of which `index` has those before. Its
// doubles are not dropped.
struct ChunkPlace {
  uint64_t offset = ARCTRACE_HEADER_SIZE;
  uint32_t sequence = 0;
};
absl::Status index_chunks_untrusted(Input& input, ChunkPlace from,
                                    const Geometry& geometry, FindingLog& findings,
                                    bool verifies_checksums, BlockIndex& index);

}  // namespace arctrace::reader
