// The blocks of a trace's files: what the index of a file says of them, where it has one
// and only a range is read; else what the header of each chunk says.
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
#include "reader/trace/finding_log.hpp"
#include "reader/trace/index_chunk.hpp"
#include "reader/trace/input.hpp"
#include "reader/trace/writer_lists.hpp"

namespace arctrace::reader {

// The parts of a recording are taken as one file, in which their bytes and chunks follow
// one another: see join_inputs().
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

  // Of all parts. Each hand-out is there once.
  const BlockIndex& index() const { return all_; }
  // Whether the block, one of index(), is what its file's index says of it, by its
  // headers; true without an index. Error: the input cannot be read.
  absl::StatusOr<bool> agrees_untrusted(const BlockRef& block,
                                        const Geometry& geometry) const;
  // nullopt: its file does not list them.
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
