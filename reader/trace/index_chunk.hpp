// The index that a recorder writes at the end of a trace file.
#pragma once

#include <absl/status/statusor.h>

#include <optional>

#include "reader/trace/block_index.hpp"

namespace arctrace::reader {

// What index_file_untrusted() finds, read from the file's index in time that depends on
// the number of blocks only, and with the blocks' facts. nullopt if there is no index, or
// one that does not fit the file (a finding). What it says of a block may still be wrong:
// see is_as_indexed_untrusted(). Error: the input cannot be read.
absl::StatusOr<std::optional<BlockIndex>> read_index_untrusted(Input& input,
                                                               const Geometry& geometry,
                                                               bool has_checksums,
                                                               FindingLog& findings);

// Whether the chunk is what an index said of it. A finding if it is not.
absl::StatusOr<bool> is_as_indexed_untrusted(Input& input, const BlockRef& ref,
                                             const Geometry& geometry,
                                             FindingLog& findings);

}  // namespace arctrace::reader
