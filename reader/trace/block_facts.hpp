// What the records of a block say that its header does not, and that decides whether a
// reader of a range may pass over the block.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reader/trace/block_index.hpp"
#include "reader/trace/input.hpp"

namespace arctrace::reader {

// Walks through an exclusive block, without decoding its records' bodies, and returns its
// facts (ARCTRACE_FACT_*). Error: the input cannot be read.
absl::StatusOr<uint16_t> scan_facts_untrusted(Input& input, const BlockRef& block,
                                              std::vector<std::byte>& scratch);

}  // namespace arctrace::reader
