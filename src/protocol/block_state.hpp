// Packs and unpacks a block's state word: generation, owner slot and phase (format.h).
#pragma once

#include <arctrace/format.h>

#include <cstdint>

namespace arctrace {

struct BlockState {
  uint32_t generation;
  uint32_t slot;
  uint32_t phase;  // enum arctrace_phase if the word is not damaged

  static BlockState unpack(uint64_t word) {
    return {static_cast<uint32_t>(word >> 32),
            static_cast<uint32_t>(word >> 16) & 0xFFFFu,
            static_cast<uint32_t>(word & 0xFFu)};
  }
  uint64_t pack() const {
    return uint64_t{generation} << 32 | uint64_t{slot} << 16 | phase;
  }
  BlockState with(uint32_t next) const { return {generation, slot, next}; }
};

// A word that names a block in one generation (as control.shared_current does); 0: none.
struct BlockName {
  static uint64_t make(uint32_t generation, uint32_t index) {
    return uint64_t{generation} << 32 | (index + 1);
  }
  // The index is untrusted; check its bound before use. REQUIRES: name != 0.
  static uint32_t index(uint64_t name) { return static_cast<uint32_t>(name) - 1; }
  static uint32_t generation(uint64_t name) { return static_cast<uint32_t>(name >> 32); }
};

}  // namespace arctrace
