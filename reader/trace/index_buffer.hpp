// The blocks in use of a buffer's image.
#pragma once

#include <absl/status/statusor.h>

#include "reader/trace/block_index.hpp"
#include "reader/trace/buffer_state.hpp"

namespace arctrace::reader {

// Fills in `state`, too. What cannot be a block or a slot leads to findings. Error: the
// input cannot be read.
absl::StatusOr<BlockIndex> index_buffer_untrusted(Input& input, const Geometry& geometry,
                                                  FindingLog& findings,
                                                  BufferState& state);

}  // namespace arctrace::reader
