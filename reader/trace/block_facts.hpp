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

// Whether a record of this type says what a later STACK does not tell.
constexpr bool is_needed_later(uint16_t type) {
  return type == ARCTRACE_TYPE_COROUTINE || type == ARCTRACE_TYPE_VFORK_BEGIN ||
         type == ARCTRACE_TYPE_VFORK_END || type == ARCTRACE_TYPE_EXIT_NAMED;
}

}  // namespace arctrace::reader
