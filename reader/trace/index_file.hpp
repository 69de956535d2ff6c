// The blocks of a trace file, found by its chunk headers.
#pragma once

#include <absl/status/statusor.h>

#include "reader/trace/block_index.hpp"

namespace arctrace::reader {

// Breaches of the rules about chunks and blocks lead to findings. Error: the input cannot
// be read. `verifies_checksums` costs a reading of the whole file.
absl::StatusOr<BlockIndex> index_file_untrusted(Input& input, const Geometry& geometry,
                                                FindingLog& findings,
                                                bool verifies_checksums);

}  // namespace arctrace::reader
