// The index of a trace's blocks: where they stand and what their headers say, found by
// the headers of a file's chunks and without reading the records in them; and copies of
// blocks.
#pragma once

#include <absl/status/statusor.h>
#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reader/trace/findings.hpp"
#include "reader/trace/input.hpp"
#include "src/buffer/buffer_view.hpp"

namespace arctrace::reader {

// One block of a trace, or one RECORDS chunk of a file, whose header has been checked.
struct BlockRef {
  enum class Kind : uint8_t {
    kExclusive,    // compact or bare form: one writer
    kShared,       // full form: any writer
    kDefinitions,  // full form
    kCollector,    // a RECORDS chunk: no block header, full form
  };

  uint64_t chunk = 0;   // chunk sequence, or block index in a buffer
  uint64_t offset = 0;  // of the image in the input
  uint32_t size = 0;    // bytes of the image that exist
  Kind kind = Kind::kExclusive;
  bool cut = false;        // the input ends inside it
  bool live = false;       // copied, now or later, while its writers were alive
  bool in_buffer = false;  // not in a file: the block may be recycled while it is read
  bool changes = false;    // in a buffer with writers, which may write into it, too
  uint16_t form = ARCTRACE_FORM_FULL;  // enum arctrace_block_form
  uint16_t flags = 0;                  // ARCTRACE_CHUNK_*
  uint16_t facts = 0;                  // ARCTRACE_FACT_*; 0 until they are found
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
  // The offset at which the records begin.
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
  // The place where a chunk can be appended: after the last whole one that is not of
  // SYMBOLS.
  uint64_t end = ARCTRACE_HEADER_SIZE;
  uint32_t next_sequence = 0;
  uint64_t bytes = 0;         // of all chunks or blocks in use
  bool ends_early = false;    // the input is cut off, or damaged to its end
  bool lacks_middle = false;  // of several files, one before the last ends early
};

// Fills in `ref` from `header`, a private copy. Returns false, with a finding, if
// `header` is not a block's. REQUIRES: ref.chunk is set.
bool read_block_header_untrusted(const arctrace_block_header& header,
                                 const Geometry& geometry, uint64_t block_index,
                                 BlockRef& ref, FindingLog& findings);

// Copies the bytes from `begin` of a block's image to `out` and returns how many: fewer
// if the input has shrunk (a finding), none if the block was recycled since it was
// indexed. Error: the input cannot be read.
absl::StatusOr<size_t> copy_block_untrusted(Input& input, const BlockRef& ref,
                                            uint32_t begin, std::span<std::byte> out,
                                            FindingLog& findings);

// A file of a split recording (kParts) begins with copies of the definitions of the file
// before it, so such doubles are expected.
enum class DoublesOf : uint8_t { kFile, kParts };

// Leaves one block of each hand-out in the index, the longest: a block that a collector
// copied and did not free before it died is copied again by the next collector.
void drop_doubles(BlockIndex& index, DoublesOf of, FindingLog& findings);

// Both headers of a BLOCK chunk. They are read together, so that most chunks take one
// read.
struct ChunkStart {
  arctrace_chunk_header chunk;
  arctrace_block_header block;
};

// Whether the chunk's size is one that its kind can have. Returns true for kinds that are
// not known.
bool has_possible_size(const arctrace_chunk_header& chunk, const Geometry& geometry);

// Indexes a file. Breaches of the rules about chunks and blocks lead to findings. Error:
// the input cannot be read. `verifies_checksums` costs a pass over the whole file.
absl::StatusOr<BlockIndex> index_file_untrusted(Input& input, const Geometry& geometry,
                                                FindingLog& findings,
                                                bool verifies_checksums);

// The place from which index_chunks_untrusted() adds chunks to an `index` that has those
// before. It does not drop doubles.
struct ChunkPlace {
  uint64_t offset = ARCTRACE_HEADER_SIZE;
  uint32_t sequence = 0;
};
absl::Status index_chunks_untrusted(Input& input, ChunkPlace from,
                                    const Geometry& geometry, FindingLog& findings,
                                    bool verifies_checksums, BlockIndex& index);

// Returns the facts of an exclusive block (ARCTRACE_FACT_*): what its records tell and
// its header does not, and what decides whether a reader of a range may skip the block.
// Walks through the block, without decoding its records' bodies. Error: the input cannot
// be read.
absl::StatusOr<uint16_t> scan_facts_untrusted(Input& input, const BlockRef& block,
                                              std::vector<std::byte>& scratch);

// ---- Copies of blocks whose writers may be at work meanwhile ----

// Copies the bytes from `begin` of a block of the input to `out`, and returns how many:
// fewer if the input has shrunk. `begin`: 0, or where a record begins. Each record in the
// copy is whole, or in progress, or not there at all, as far as the machine keeps stores
// in order, and loads (SPEC.md LIVE-5 (c)); records that were begun during the copy may
// be missing from the first such one on. Takes three reads of so many bytes, or some more
// while writers are slow. Error: the input cannot be read.
absl::StatusOr<size_t> read_live_untrusted(Input& input, const BlockRef& ref,
                                           uint32_t begin, std::span<std::byte> out);

// Returns the first place at which two copies of the same records, one made after the
// other, differ in whether a word is 0xffffffff; their size if they do not. REQUIRES:
// they have the same size, a multiple of 4.
size_t begun_between_untrusted(std::span<const std::byte> first,
                               std::span<const std::byte> second);

// Reduces a third copy of the records, made after the second one, to the records of the
// first two copies: up to `end`, where these differ.
void join_live_copies_untrusted(std::span<const std::byte> second, size_t end,
                                std::span<std::byte> third);

}  // namespace arctrace::reader
