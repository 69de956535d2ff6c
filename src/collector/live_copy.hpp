// Copying blocks while their writers write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/buffer_view.hpp"

namespace arctrace {

// copy_live_block_untrusted() of block `index`, up to where no record is begun any more.
// May wait for writers at work there, some milliseconds in all.
std::vector<std::byte> copy_live_block_untrusted(const BufferView& view, uint32_t index);

}  // namespace arctrace
