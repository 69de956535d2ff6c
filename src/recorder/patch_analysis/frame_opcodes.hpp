// The instructions of unwind tables, DW_CFA_*. Three more have their operand in the
// opcode's low six bits: advance_loc, offset and restore, with 1, 2 and 3 in the high
// two.
#pragma once

#include <cstdint>

namespace arctrace {

enum FrameOpcode : uint8_t {
  kNop = 0x00,
  kAdvanceLoc1 = 0x02,
  kAdvanceLoc2 = 0x03,
  kAdvanceLoc4 = 0x04,
  kOffsetExtended = 0x05,
  kRestoreExtended = 0x06,
  kUndefined = 0x07,
  kSameValue = 0x08,
  kRegister = 0x09,
  kRememberState = 0x0A,
  kRestoreState = 0x0B,
  kDefCfa = 0x0C,
  kDefCfaRegister = 0x0D,
  kDefCfaOffset = 0x0E,
  kDefCfaExpression = 0x0F,
  kExpression = 0x10,
  kOffsetExtendedSf = 0x11,
  kDefCfaSf = 0x12,
  kDefCfaOffsetSf = 0x13,
  kValOffset = 0x14,
  kValOffsetSf = 0x15,
  kValExpression = 0x16,
  kGnuArgsSize = 0x2E,
  kGnuNegativeOffsetExtended = 0x2F,
};

}  // namespace arctrace
