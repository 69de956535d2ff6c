// The writers of each block that many threads wrote, as the WRITERS chunks of a file list
// them, or as the blocks' records say. With them a reader of a range knows which of these
// blocks it needs.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "reader/trace/block_index.hpp"
#include "reader/trace/input.hpp"

namespace arctrace::reader {

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

  // What the WRITERS chunks of `index` list, in time in proportion to their size. nullopt
  // if they do not list the blocks as they stand in `index`. Error: the input cannot be
  // read.
  static absl::StatusOr<std::optional<WriterLists>> read_untrusted(
      Input& input, const BlockIndex& index, bool has_checksums);

  // The next block. Of too many writers in all, nothing is kept.
  void add(uint64_t last_ticks, std::span<const arctrace_block_writer> writers);

  // Whether all that was added is there.
  bool is_complete() const { return !has_too_many_; }
  // In the order in which they were added.
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

// The writers of a block's records. Error: the input cannot be read.
absl::StatusOr<WriterLists> scan_writers_untrusted(Input& input, const BlockRef& block);

// The chunk of the first block of which the WRITERS chunks of `index` do not say what its
// records do; nullopt if there are none, or no such block. Error: the input cannot be
// read.
absl::StatusOr<std::optional<uint64_t>> find_wrong_writers_untrusted(
    Input& input, const BlockIndex& index, bool has_checksums);

}  // namespace arctrace::reader
