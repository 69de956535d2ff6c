// Looking at a block's bytes that writers made: untrusted, bounded by the block.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace arctrace {

// What the walk from record to record through a block finds; it stops where a word 0
// makes no sense.
struct BlockContents {
  uint32_t used = 0;     // bytes up to the end of the last record, and of all but 0xff
  uint64_t records = 0;  // committed ones that programs wrote: ENTER ... MARK
  uint64_t torn = 0;     // the same, in progress
};

// A record's last words may be 0xffffffff too: only the walk knows where it ends.
BlockContents scan_block_untrusted(std::span<std::byte> block);

// Hands out each committed record of a block of full form. REQUIRES: `block` is our own
// copy.
void for_each_full_record(
    std::span<const std::byte> block,
    const std::function<void(uint16_t type, uint64_t ticks,
                             std::span<const std::byte> body)>& visit);

// A copy of a block's header, whose first line others may be changing.
arctrace_block_header copy_block_header(arctrace_block_header& header);

// A copy of a block that its writers may still be writing, up to the offset `settled`,
// below which nobody begins a record any more: committed records whole, of one in
// progress just its word 0 (the rest reads as a hole). REQUIRES: settled <= block_size.
std::vector<std::byte> copy_live_block_untrusted(std::byte* block, uint32_t block_size,
                                                 uint32_t settled);

}  // namespace arctrace
