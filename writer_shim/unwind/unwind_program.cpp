#include "writer_shim/unwind/unwind_program.hpp"

namespace arctrace::shim {
namespace {

// DW_OP_bregN offset, which is how compilers tell places in a realigned stack.
struct BaseExpression {
  uint64_t base_register;
  int64_t offset;
  bool good;
};

BaseExpression take_base(UnwindBytes& code) {
  constexpr uint8_t kBreg0 = 0x70;
  constexpr uint8_t kBreg31 = 0x8f;
  const auto operation = code.take<uint8_t>();
  const int64_t offset = code.sleb();
  return {uint64_t{operation} - kBreg0, offset,
          code.good() && operation >= kBreg0 && operation <= kBreg31};
}

}  // namespace

bool UnwindProgram::run(UnwindBytes& code) {
  while (code.more() && !past_) {
    const auto byte = code.take<uint8_t>();
    const uint8_t low = byte & 0x3f;
    switch (byte & 0xc0) {
      case 0x40:
        advance(low);
        break;
      case 0x80:
        save(low, FrameRule::FramePointer::kAtCfa, factored(code.uleb()));
        break;
      case 0xc0:
        restore(low);
        break;
      default:
        if (!step(low, code)) return false;
    }
  }
  return code.good();
}

void UnwindProgram::save(uint64_t number, FrameRule::FramePointer where, int64_t offset) {
  SavedRegister* const saved = row_.saved(number);
  if (saved != nullptr) *saved = {where, offset};
}

void UnwindProgram::restore(uint64_t number) {
  SavedRegister* const saved = row_.saved(number);
  if (saved != nullptr) *saved = *initial_.saved(number);
}

bool UnwindProgram::step(uint8_t operation, UnwindBytes& code) {
  using Where = FrameRule::FramePointer;
  uint64_t number = 0;
  switch (operation) {
    case 0x00:  // nop
    case 0x2d:  // aarch64: return address signed or not
      return true;
    case 0x01:
      move_to(code.pointer(cie_.encoding));
      return true;
    case 0x02:
      advance(code.take<uint8_t>());
      return true;
    case 0x03:
      advance(code.take<uint16_t>());
      return true;
    case 0x04:
      advance(code.take<uint32_t>());
      return true;
    case 0x2e:  // size of pushed arguments
      code.uleb();
      return true;
    case 0x05:
      number = code.uleb();
      save(number, Where::kAtCfa, factored(code.uleb()));
      return true;
    case 0x11:
      number = code.uleb();
      save(number, Where::kAtCfa, code.sleb() * cie_.data_alignment);
      return true;
    case 0x06:
      restore(code.uleb());
      return true;
    case 0x08:
      save(code.uleb(), Where::kSame, 0);
      return true;
    case 0x07:  // undefined
      save(code.uleb(), Where::kUnknown, 0);
      return true;
    case 0x09:  // in another register, or computed
    case 0x14:
    case 0x2f:
      save(code.uleb(), Where::kUnknown, 0);
      code.uleb();
      return true;
    case 0x15:
      save(code.uleb(), Where::kUnknown, 0);
      code.sleb();
      return true;
    case 0x10:
    case 0x16:
      number = code.uleb();
      save_expression(number, code.part(code.uleb()), operation == 0x10);
      return true;
    default:
      return step_cfa(operation, code);
  }
}

void UnwindProgram::save_expression(uint64_t number, UnwindBytes code, bool is_place) {
  const BaseExpression base = take_base(code);
  const bool known = is_place && base.good && !code.more() &&
                     base.base_register == machine::kFramePointerRegister;
  save(number,
       known ? FrameRule::FramePointer::kAtItself : FrameRule::FramePointer::kUnknown,
       base.offset);
}

void UnwindProgram::set_cfa(uint64_t base_register, int64_t offset) {
  row_.base_register = base_register;
  row_.offset = offset;
  row_.is_saved = row_.is_unknown = false;
}

bool UnwindProgram::step_cfa(uint8_t operation, UnwindBytes& code) {
  uint64_t number = 0;
  switch (operation) {
    case 0x0a:
      if (remembered_count_ == kRemembered) return false;
      remembered_[remembered_count_++] = row_;
      return true;
    case 0x0b:
      if (remembered_count_ == 0) return false;
      row_ = remembered_[--remembered_count_];
      return true;
    case 0x0c:
      number = code.uleb();
      set_cfa(number, static_cast<int64_t>(code.uleb()));
      return true;
    case 0x0d:
      row_.base_register = code.uleb();
      return true;
    case 0x0e:
      row_.offset = static_cast<int64_t>(code.uleb());
      return true;
    case 0x0f:
      set_cfa_expression(code.part(code.uleb()));
      return true;
    case 0x12:
      number = code.uleb();
      set_cfa(number, code.sleb() * cie_.data_alignment);
      return true;
    case 0x13:
      row_.offset = code.sleb() * cie_.data_alignment;
      return true;
    default:
      return false;
  }
}

void UnwindProgram::set_cfa_expression(UnwindBytes code) {
  constexpr uint8_t kDeref = 0x06;
  const BaseExpression base = take_base(code);
  set_cfa(base.base_register, base.offset);
  row_.is_saved = true;
  row_.is_unknown =
      !base.good || code.take<uint8_t>() != kDeref || !code.good() || code.more();
}

}  // namespace arctrace::shim
