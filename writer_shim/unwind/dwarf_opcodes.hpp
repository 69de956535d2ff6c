// The opcodes of call frame instructions, and of the few expressions, that unwind_program
// knows. They have the names that the DWARF standard and elfutils' dwarf.h give them,
// which is not included because the shim is built from no library's headers but libc's.
#pragma once

#include <cstdint>

namespace arctrace::shim {

// The first three have an operand in their lower six bits.
inline constexpr uint8_t kCfaOpcodeMask = 0xc0;
inline constexpr uint8_t kCfaOperandMask = 0x3f;
enum DwarfCfa : uint8_t {
  DW_CFA_advance_loc = 0x40,
  DW_CFA_offset = 0x80,
  DW_CFA_restore = 0xc0,

  DW_CFA_nop = 0x00,
  DW_CFA_set_loc = 0x01,
  DW_CFA_advance_loc1 = 0x02,
  DW_CFA_advance_loc2 = 0x03,
  DW_CFA_advance_loc4 = 0x04,
  DW_CFA_offset_extended = 0x05,
  DW_CFA_restore_extended = 0x06,
  DW_CFA_undefined = 0x07,
  DW_CFA_same_value = 0x08,
  DW_CFA_register = 0x09,
  DW_CFA_remember_state = 0x0a,
  DW_CFA_restore_state = 0x0b,
  DW_CFA_def_cfa = 0x0c,
  DW_CFA_def_cfa_register = 0x0d,
  DW_CFA_def_cfa_offset = 0x0e,
  DW_CFA_def_cfa_expression = 0x0f,
  DW_CFA_expression = 0x10,
  DW_CFA_offset_extended_sf = 0x11,
  DW_CFA_def_cfa_sf = 0x12,
  DW_CFA_def_cfa_offset_sf = 0x13,
  DW_CFA_val_offset = 0x14,
  DW_CFA_val_offset_sf = 0x15,
  DW_CFA_val_expression = 0x16,
  DW_CFA_AARCH64_negate_ra_state = 0x2d,  // the return address is signed, or no more
  DW_CFA_GNU_args_size = 0x2e,
  DW_CFA_GNU_negative_offset_extended = 0x2f
};

enum DwarfOperation : uint8_t {
  DW_OP_deref = 0x06,
  DW_OP_breg0 = 0x70,
  DW_OP_breg31 = 0x8f
};

}  // namespace arctrace::shim
