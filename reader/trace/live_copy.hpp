// Copies of blocks whose writers may be at work while they are copied.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "reader/trace/block_ref.hpp"
#include "reader/trace/input.hpp"

namespace arctrace::reader {

// Copies the bytes from `begin` of a block of the input to `out`, and returns how many:
// fewer if the input has shrunk. `begin`: 0, or where a record does. Each record in the
// copy is whole, or in progress, or not there at all, as far as the machine keeps stores
// in order, and loads (SPEC.md LIVE-5 (c)); what was begun during the copy may be missing
// from the first such record on. Takes three reads of so many bytes, or some more while
// writers are slow. Error: the input cannot be read.
absl::StatusOr<size_t> read_live_untrusted(Input& input, const BlockRef& ref,
                                           uint32_t begin, std::span<std::byte> out);

// Where two copies of the same records, one made after the other, differ first in whether
// a word is 0xffffffff; their size if they do not. REQUIRES: they have the same size, a
// multiple of 4.
size_t begun_between_untrusted(std::span<const std::byte> first,
                               std::span<const std::byte> second);

// Makes a third copy of the records, made after the second one, what they were when the
// two first ones were made: up to `end`, which is where these differ.
void join_live_copies_untrusted(std::span<const std::byte> second, size_t end,
                                std::span<std::byte> third);

}  // namespace arctrace::reader
