// Copies a block while its writers may still be writing to it, for the drain's copies of
// open blocks and for snapshots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/buffer/buffer_view.hpp"

namespace arctrace {

// How long the copies of several blocks may wait for writers, all in all: names that a
// hostile process forged could make each of them wait.
struct Patience {
  uint32_t left_ms = 500;
};

// Copies block `index` (block_scan.hpp) up to the offset below which no record is begun
// any more. May wait some milliseconds for writers that are active in the block.
std::vector<std::byte> copy_live_block_untrusted(const BufferView& view, uint32_t index,
                                                 Patience& patience);

}  // namespace arctrace
