// The instructions that are read or written where hooks are placed.
#pragma once

#include <cstddef>

namespace arctrace::shim {

inline constexpr unsigned char kBreakpoint = 0xcc;
inline constexpr unsigned char kEndbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
inline constexpr unsigned char kJump = 0xe9;  // and a signed 32-bit distance from its end
inline constexpr size_t kJumpSize = 5;
inline constexpr unsigned char kCall = 0xe8;       // and a distance, like kJump
inline constexpr unsigned char kShortJump = 0xeb;  // and a signed 8-bit one
inline constexpr unsigned char kReturn = 0xc3;
inline constexpr unsigned char kNop = 0x90;
inline constexpr unsigned char kOperandPrefix = 0x66;           // of longer NOPs, too
inline constexpr unsigned char kCallThrough[2] = {0xff, 0x15};  // call *distance(%rip)
inline constexpr unsigned char kJumpThrough[2] = {0xff, 0x25};  // jmp *distance(%rip)

// The length of the NOP, or of other filler, at `at`; 0: it is something else.
inline size_t filler_length(const unsigned char* at, const unsigned char* end) {
  const unsigned char* from = at;
  while (at < end && (*at == 0x66 || *at == 0x2e)) ++at;
  if (at == end) return 0;
  if (*at == 0x90 || *at == kBreakpoint) return static_cast<size_t>(at + 1 - from);
  if (end - at < 3 || at[0] != 0x0f || at[1] != 0x1f) return 0;
  size_t operands = 0;  // bytes after 0f 1f
  switch (at[2]) {
    case 0x00:
      operands = 1;
      break;
    case 0x40:
      operands = 2;
      break;
    case 0x44:
      operands = 3;
      break;
    case 0x80:
      operands = 5;
      break;
    case 0x84:
      operands = 6;
      break;
    default:
      return 0;
  }
  const auto length = static_cast<size_t>(at + 2 - from) + operands;
  return length <= static_cast<size_t>(end - from) ? length : 0;
}

// The end of the code that may be before a function's sled: in functions with
// -fsanitize=function a short jump over the data of their type, and a landing pad.
inline const unsigned char* end_of_preamble(const unsigned char* at) {
  constexpr unsigned char kTypeSize = 6;
  if (at[0] == kShortJump && at[1] == kTypeSize) at += 2 + kTypeSize;
  if (__builtin_memcmp(at, kEndbr64, sizeof kEndbr64) == 0) at += sizeof kEndbr64;
  return at;
}

}  // namespace arctrace::shim
