// Runs the programs of unwind tables. Only the rules for the CFA, the frame pointer and
// the return address are used; those for other registers are skipped. An expression is
// understood if it is a register and an offset, which is what compilers write for a
// realigned stack.
#include "writer_shim/unwind/unwind_program.hpp"

#include <cstdint>

namespace arctrace::shim {

namespace {

// The expression DW_OP_bregN offset.
struct BaseExpression {
  uint64_t base_register;
  int64_t offset;
  bool good;
};

BaseExpression take_base(UnwindBytes& code) {
  const auto operation = code.number<uint8_t>();
  const int64_t offset = code.sleb();
  return {uint64_t{operation} - DW_OP_breg0, offset,
          code.good() && operation >= DW_OP_breg0 && operation <= DW_OP_breg31};
}

}  // namespace

bool UnwindProgram::run(UnwindBytes& code) {
  while (!code.at_end() && !past_) {
    const auto byte = code.number<uint8_t>();
    const uint8_t operand = byte & kCfaOperandMask;
    switch (byte & kCfaOpcodeMask) {
      case DW_CFA_advance_loc:
        advance(operand);
        break;
      case DW_CFA_offset:
        save(operand, SavedAt::kAtCfa, factored(code.uleb()));
        break;
      case DW_CFA_restore:
        restore(operand);
        break;
      default:
        if (!step(byte, code)) return false;
    }
  }
  return code.good();
}

void UnwindProgram::save(uint64_t number, SavedAt where, int64_t offset) {
  SavedRegister* const saved = row_.saved(number);
  if (saved != nullptr) *saved = {where, offset};
}

void UnwindProgram::restore(uint64_t number) {
  SavedRegister* const saved = row_.saved(number);
  if (saved != nullptr) *saved = *initial_.saved(number);
}

bool UnwindProgram::step(uint8_t opcode, UnwindBytes& code) {
  uint64_t number = 0;
  switch (opcode) {
    case DW_CFA_nop:
    case DW_CFA_AARCH64_negate_ra_state:
      return true;
    case DW_CFA_set_loc:
      move_to(code.pointer(cie_.encoding));
      return true;
    case DW_CFA_advance_loc1:
      advance(code.number<uint8_t>());
      return true;
    case DW_CFA_advance_loc2:
      advance(code.number<uint16_t>());
      return true;
    case DW_CFA_advance_loc4:
      advance(code.number<uint32_t>());
      return true;
    case DW_CFA_GNU_args_size:
      code.uleb();
      return true;
    case DW_CFA_offset_extended:
      number = code.uleb();
      save(number, SavedAt::kAtCfa, factored(code.uleb()));
      return true;
    case DW_CFA_offset_extended_sf:
      number = code.uleb();
      save(number, SavedAt::kAtCfa, code.sleb() * cie_.data_alignment);
      return true;
    case DW_CFA_restore_extended:
      restore(code.uleb());
      return true;
    case DW_CFA_same_value:
      save(code.uleb(), SavedAt::kSame, 0);
      return true;
    case DW_CFA_undefined:
      save(code.uleb(), SavedAt::kUnknown, 0);
      return true;
    case DW_CFA_register:
    case DW_CFA_val_offset:
    case DW_CFA_GNU_negative_offset_extended:
      save(code.uleb(), SavedAt::kUnknown, 0);
      code.uleb();
      return true;
    case DW_CFA_val_offset_sf:
      save(code.uleb(), SavedAt::kUnknown, 0);
      code.sleb();
      return true;
    case DW_CFA_expression:
    case DW_CFA_val_expression:
      number = code.uleb();
      save_expression(number, code.part(code.uleb()), opcode == DW_CFA_expression);
      return true;
    default:
      return step_cfa(opcode, code);
  }
}

void UnwindProgram::save_expression(uint64_t number, UnwindBytes code, bool is_address) {
  const BaseExpression base = take_base(code);
  const bool known = is_address && base.good && !!code.at_end() &&
                     base.base_register == machine::kFramePointerRegister;
  save(number, known ? SavedAt::kAtItself : SavedAt::kUnknown, base.offset);
}

void UnwindProgram::set_cfa(uint64_t base_register, int64_t offset) {
  row_.base_register = base_register;
  row_.offset = offset;
  row_.is_saved = row_.is_unknown = false;
}

bool UnwindProgram::step_cfa(uint8_t opcode, UnwindBytes& code) {
  uint64_t number = 0;
  switch (opcode) {
    case DW_CFA_remember_state:
      if (remembered_count_ == kRemembered) return false;
      remembered_[remembered_count_++] = row_;
      return true;
    case DW_CFA_restore_state:
      if (remembered_count_ == 0) return false;
      row_ = remembered_[--remembered_count_];
      return true;
    case DW_CFA_def_cfa:
      number = code.uleb();
      set_cfa(number, static_cast<int64_t>(code.uleb()));
      return true;
    case DW_CFA_def_cfa_register:
      row_.base_register = code.uleb();
      return true;
    case DW_CFA_def_cfa_offset:
      row_.offset = static_cast<int64_t>(code.uleb());
      return true;
    case DW_CFA_def_cfa_expression:
      set_cfa_expression(code.part(code.uleb()));
      return true;
    case DW_CFA_def_cfa_sf:
      number = code.uleb();
      set_cfa(number, code.sleb() * cie_.data_alignment);
      return true;
    case DW_CFA_def_cfa_offset_sf:
      row_.offset = code.sleb() * cie_.data_alignment;
      return true;
    default:
      return false;
  }
}

void UnwindProgram::set_cfa_expression(UnwindBytes code) {
  const BaseExpression base = take_base(code);
  set_cfa(base.base_register, base.offset);
  row_.is_saved = true;
  row_.is_unknown = !base.good || code.number<uint8_t>() != DW_OP_deref || !code.good() ||
                    !code.at_end();
}

}  // namespace arctrace::shim
