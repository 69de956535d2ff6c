// The locks of a stub's call, which its entry has after the key: its first arguments.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>

#include "src/writer/reservation.hpp"

namespace arctrace {

template <uint32_t kCount>
struct CallLocks {
  uintptr_t addresses[kCount];

  static constexpr uint32_t size() { return kCount * sizeof(arctrace_lock_word); }
  __attribute__((always_inline)) void store(std::byte* to) const {
    for (uint32_t i = 0; i < kCount; ++i) {
      part_at<arctrace_lock_word>(to + i * sizeof(arctrace_lock_word)).address =
          addresses[i];
    }
  }
};

}  // namespace arctrace
