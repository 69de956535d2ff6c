// Decodes x86-64 instructions as far as following a function's code needs: their length,
// their opcode, and the memory or the registers that they name.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arctrace::shim {

struct DecodedInstruction {
  static constexpr int kNone = -1;
  static constexpr int kRip = -2;

  size_t length = 0;  // 0: the bytes are no instruction that is known
  // 1: of one byte; 2: after 0f; 3 and 4: after 0f 38 and 0f 3a; 5: VEX or EVEX.
  uint8_t map = 0;
  uint8_t opcode = 0;
  bool is_wide = false;  // REX.W
  bool has_operands = false;
  bool is_memory = false;  // of the operand that may be memory
  int reg = kNone;         // the other operand, or more of the opcode
  int rm = kNone;          // the register that it is, or
  int base = kNone;        // the register that its address begins with, or kRip
  bool has_index = false;
  int32_t displacement = 0;
  int64_t immediate = 0;  // also the distance of a jump
};

DecodedInstruction decode_instruction(const unsigned char* at);

}  // namespace arctrace::shim
