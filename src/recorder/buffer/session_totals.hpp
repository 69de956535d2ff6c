// What a session has written and lost so far, as its slots and its control page count it.
#pragma once

#include <cstdint>
#include <vector>

#include "src/buffer/buffer_view.hpp"

namespace arctrace {

// All records of the session so far, in the buffer or not any more.
uint64_t session_written(const BufferView& view);

// All losses of the session so far, by cause.
std::vector<uint64_t> session_losses(const BufferView& view);

// What all CPUs of the kernel writer have lost.
uint64_t cpu_losses(const BufferView& view);

}  // namespace arctrace
