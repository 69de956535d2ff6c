// The blocks of a trace's files, and the facts that a file's recorder noted of them: the
// index of its chunks, and the writers of shared blocks.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "reader/trace/block_index.hpp"
#include "reader/trace/findings.hpp"
#include "reader/trace/input.hpp"
#include "reader/trace/record.hpp"

namespace arctrace::reader {

// The writers of each block that many threads wrote, as the WRITERS chunks of a file list
// them, or as the blocks' records tell. They tell a reader of a range which of these
// blocks it needs.
class WriterLists {
 public:
  struct Block {
    uint64_t last_ticks = 0;
    size_t begin = 0, end = 0;  // of its writers among all

    bool operator==(const Block&) const = default;
  };

  // Whether a file lists the writers of such a block.
  static bool lists(const BlockRef& block) {
    return block.kind == BlockRef::Kind::kShared && !block.of_kernel();
  }

  // Reads the lists in the WRITERS chunks of `index`, in time in proportion to their
  // size. Returns nullopt if they do not list the blocks as they stand in `index`. Error:
  // the input cannot be read.
  static absl::StatusOr<std::optional<WriterLists>> read_untrusted(
      Input& input, const BlockIndex& index, bool has_checksums);

  // Adds the next block. If there are too many writers in all, the lists stay empty.
  void add(uint64_t last_ticks, std::span<const arctrace_block_writer> writers);

  // Whether everything that was added is there.
  bool is_complete() const { return !has_too_many_; }
  // The blocks in the order in which they were added.
  std::span<const Block> blocks() const { return blocks_; }
  std::span<const arctrace_block_writer> writers(const Block& block) const {
    return std::span(writers_).subspan(block.begin, block.end - block.begin);
  }

 private:
  bool take_untrusted(std::span<const std::byte> bytes, const BlockIndex& index);

  std::vector<Block> blocks_;
  std::vector<arctrace_block_writer> writers_;
  bool has_too_many_ = false;
};

// Lists the writers of a block's records. Error: the input cannot be read.
absl::StatusOr<WriterLists> scan_writers_untrusted(Input& input, const BlockRef& block);

// Returns the chunk of the first block whose records do not agree with the WRITERS chunks
// of `index`; nullopt if there are no such chunks, or no such block. Error: the input
// cannot be read.
absl::StatusOr<std::optional<uint64_t>> find_wrong_writers_untrusted(
    Input& input, const BlockIndex& index, bool has_checksums);

// The place of a trace file's index: the facts that its recorder noted of each chunk, so
// that a reader of a range need not read all of them.
struct FileIndexPlace {
  uint64_t offset = 0;  // of the INDEX chunk, as the file's header has it
  bool has_checksums = false;
};

// Reads what index_file_untrusted() finds, from the INDEX and the chunks after it, in
// time that depends on the number of blocks only, and with the blocks' facts. Returns
// nullopt if there is no INDEX that lists all chunks before it (a finding), or if blocks
// are there twice. An entry of the index may still be wrong: see
// is_as_indexed_untrusted(). Error: the input cannot be read.
absl::StatusOr<std::optional<BlockIndex>> read_index_untrusted(Input& input,
                                                               FileIndexPlace place,
                                                               const Geometry& geometry,
                                                               FindingLog& findings);

// Whether the chunk is as an index says, by its headers. Error: the input cannot be read.
absl::StatusOr<bool> is_as_indexed_untrusted(Input& input, const BlockRef& ref,
                                             const Geometry& geometry);
// The finding if the chunk is not as its index says.
Finding index_finding(const BlockRef& block);
// The finding if the WRITERS chunks do not agree with a block, or cannot be read as
// lists.
Finding writers_finding(uint64_t chunk);

// Compares the index, and the lists of writers, with `walked`, what
// index_file_untrusted() found, and with the blocks' records, and adds a finding for the
// first difference. Costs a walk over all blocks but those of the kernel. Error: the
// input cannot be read.
absl::Status check_index_untrusted(Input& input, FileIndexPlace place,
                                   const Geometry& geometry, const BlockIndex& walked,
                                   FindingLog& findings);

// The blocks of a trace's files: by the index of a file, if it has one and only a range
// is read; else by the header of each chunk. The parts of a recording are treated as one
// file, in which their bytes and chunks follow one another: see join_inputs().
class FileBlocks {
 public:
  struct Options {
    bool verifies_checksums = false;  // of files that have them; reads them whole
    bool uses_index = false;          // of each file that has one
  };
  // The writers of a shared block, as its file lists them.
  struct Listed {
    uint64_t last_ticks = 0;
    std::span<const arctrace_block_writer> writers;
  };

  // `parts`: in the order in which they were written. They must outlive the result.
  // Breaches lead to findings. Error: a part cannot be read.
  static absl::StatusOr<FileBlocks> find_untrusted(
      std::span<const std::unique_ptr<Input>> parts, const Geometry& geometry,
      Options options, FindingLog& findings);

  // The index of all parts. Each hand-out is there once.
  const BlockIndex& index() const { return all_; }
  // Whether the block, one of index(), is as its file's index says, by its headers; true
  // without an index. Error: the input cannot be read.
  absl::StatusOr<bool> agrees_untrusted(const BlockRef& block,
                                        const Geometry& geometry) const;
  // Returns nullopt if the block's file does not list its writers.
  std::optional<Listed> writers_of(const BlockRef& block) const;

 private:
  struct Part {
    Input* input = nullptr;
    uint64_t begin = 0;        // of its bytes in the whole
    uint64_t first_chunk = 0;  // of its chunks in the whole
    bool is_from_index = false;
    WriterLists lists;
  };
  struct ListPlace {
    size_t part = 0, block = 0;  // of its lists
  };

  static absl::StatusOr<BlockIndex> find_in_part_untrusted(Part& part,
                                                           FileIndexPlace place,
                                                           const Geometry& geometry,
                                                           Options options,
                                                           FindingLog& findings);
  absl::Status add_lists_untrusted(const BlockIndex& index, bool has_checksums,
                                   FindingLog& findings);
  void add_part(const BlockIndex& index);
  const Part& part_of(const BlockRef& block) const;

  std::vector<Part> parts_;
  BlockIndex all_;
  absl::flat_hash_map<uint64_t, ListPlace> listed_;  // by the block's offset in the whole
};

}  // namespace arctrace::reader
