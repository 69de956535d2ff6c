// The instructions, each a word of 32 bits, that are read or written in the program's
// code, and the fields of other instructions.
#pragma once

#include <cstdint>

namespace arctrace::shim {

inline constexpr uint32_t kNop = 0xd503201f;
inline constexpr uint32_t kBranchTarget = 0xd503245f;  // bti c
inline constexpr uint32_t kReturn = 0xd65f03c0;        // ret
inline constexpr uint32_t kBranch = 0x14000000;        // and a signed distance in words
inline constexpr uint32_t kBranchMask = 0x03ffffff;
inline constexpr int64_t kBranchWords = int64_t{1} << 25;  // its reach in words

// Bits [low, low + size) of a word.
inline uint32_t bits(uint32_t word, unsigned low, unsigned size) {
  return word >> low & ((1u << size) - 1);
}
inline int64_t signed_bits(uint32_t word, unsigned low, unsigned size) {
  return static_cast<int64_t>(uint64_t{word} << (64 - low - size)) >> (64 - size);
}

// Most instructions have their registers in these fields: the destination or the register
// that is stored, the base, and further operands.
inline uint32_t register_0(uint32_t word) { return bits(word, 0, 5); }
inline uint32_t register_5(uint32_t word) { return bits(word, 5, 5); }
inline uint32_t register_10(uint32_t word) { return bits(word, 10, 5); }
inline uint32_t register_16(uint32_t word) { return bits(word, 16, 5); }

}  // namespace arctrace::shim
