// Looking at a block's bytes that writers made: untrusted, bounded by the block.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace arctrace {

// Bytes of the block up to the last 4-byte word that is not 0xffffffff.
uint32_t used_bytes_untrusted(std::span<const std::byte> block);

struct RecordCount {
  uint64_t records = 0;  // committed ones that programs wrote: ENTER ... MARK
  uint64_t torn = 0;     // in progress
};

// Counts by walking from record to record; stops where a word 0 makes no sense.
RecordCount count_records_untrusted(std::span<const std::byte> block);

// A copy of a block that its writers may still be writing: committed records whole, of
// one in progress just its word 0 (the rest reads as a hole).
std::vector<std::byte> copy_live_block(std::byte* block, uint32_t block_size);

}  // namespace arctrace
