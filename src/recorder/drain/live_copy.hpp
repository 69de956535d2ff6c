// Copying blocks while their writers write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/buffer/buffer_view.hpp"

namespace arctrace {

// How long writers may still be waited for, over several blocks: names that lie could
// make each of them wait.
struct Patience {
  uint32_t left_ms = 500;
};

// copy_live_block_untrusted() of block `index`, up to where no record is begun any more.
// May wait for writers at work there, some milliseconds.
std::vector<std::byte> copy_live_block_untrusted(const BufferView& view, uint32_t index,
                                                 Patience& patience);

}  // namespace arctrace
