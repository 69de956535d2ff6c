// Decodes prefixes, opcodes and operands of x86-64 instructions.
#include "writer_shim/arch/x86_64/decoded_instruction.hpp"

namespace arctrace::shim {
namespace {

enum class Immediate : uint8_t { kNone, kByte, kWord, kOrdinary, kFull, kEnter, kBad };

struct Form {
  bool has_operands;
  Immediate immediate;
};

// The value of a byte that is sign-extended.
constexpr int32_t signed_byte(uint8_t byte) { return (byte ^ 0x80) - 0x80; }

constexpr Form kPlain = {false, Immediate::kNone};
constexpr Form kBad = {false, Immediate::kBad};
constexpr Form kOperands = {true, Immediate::kNone};
constexpr Form kOperandsByte = {true, Immediate::kByte};
constexpr Form kOperandsOrdinary = {true, Immediate::kOrdinary};
constexpr Form kByte = {false, Immediate::kByte};
constexpr Form kWord = {false, Immediate::kWord};
constexpr Form kOrdinary = {false, Immediate::kOrdinary};

// `operands`: the byte after the opcode, which is part of it in f6 and f7.
Form form_of_one_byte(uint8_t opcode, uint8_t operands) {
  const bool tests = (operands & 0x30) == 0;
  if (opcode < 0x40) {
    switch (opcode & 7) {
      case 4:
        return kByte;
      case 5:
        return kOrdinary;
      case 6:
      case 7:
        return kBad;
      default:
        return kOperands;
    }
  }
  if (opcode >= 0x70 && opcode < 0x80) return kByte;
  if (opcode >= 0xb0 && opcode < 0xb8) return kByte;
  if (opcode >= 0xb8 && opcode < 0xc0) return {false, Immediate::kFull};
  if (opcode >= 0xd8 && opcode < 0xe0) return kOperands;
  if (opcode >= 0xe0 && opcode < 0xe8) return kByte;
  if (opcode >= 0x84 && opcode < 0x90) return kOperands;
  switch (opcode) {
    case 0x63:
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
    case 0xfe:
    case 0xff:
      return kOperands;
    case 0x68:
    case 0xa9:
    case 0xe8:
    case 0xe9:
      return kOrdinary;
    case 0x69:
    case 0x81:
    case 0xc7:
      return kOperandsOrdinary;
    case 0x6a:
    case 0xa8:
    case 0xcd:
    case 0xeb:
      return kByte;
    case 0x6b:
    case 0x80:
    case 0x83:
    case 0xc0:
    case 0xc1:
    case 0xc6:
      return kOperandsByte;
    case 0xc2:
    case 0xca:
      return kWord;
    case 0xc8:
      return {false, Immediate::kEnter};
    case 0xf6:
      return tests ? kOperandsByte : kOperands;
    case 0xf7:
      return tests ? kOperandsOrdinary : kOperands;
    case 0x60:
    case 0x61:
    case 0x82:
    case 0x9a:
    case 0xa0:  // addresses of eight bytes, which compilers do not use
    case 0xa1:
    case 0xa2:
    case 0xa3:
    case 0xce:
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xea:
      return kBad;
    default:
      return kPlain;
  }
}

bool has_byte_after_0f(uint8_t opcode) {
  return (opcode >= 0x70 && opcode <= 0x73) || opcode == 0xa4 || opcode == 0xac ||
         opcode == 0xba || opcode == 0xc2 || (opcode >= 0xc4 && opcode <= 0xc6) ||
         opcode == 0x0f;
}

Form form_after_0f(uint8_t opcode) {
  if (opcode >= 0x80 && opcode < 0x90) return kOrdinary;
  if ((opcode >= 0x30 && opcode < 0x38) || (opcode >= 0xc8 && opcode < 0xd0)) {
    return kPlain;
  }
  if (opcode >= 0x05 && opcode <= 0x0b) return kPlain;
  if (opcode == 0x77 || (opcode >= 0xa0 && opcode <= 0xa2) ||
      (opcode >= 0xa8 && opcode <= 0xaa)) {
    return kPlain;
  }
  return has_byte_after_0f(opcode) ? kOperandsByte : kOperands;
}

// The head of an instruction before its opcode.
struct Head {
  const unsigned char* opcode;
  uint8_t rex = 0;
  bool is_short = false;  // prefix 66
  bool is_vector = false;
  uint8_t map = 1;
};

Head head_at(const unsigned char* at) {
  Head head{};
  head.map = 1;
  constexpr int kPrefixesMax = 8;
  for (int i = 0; i < kPrefixesMax; ++i, ++at) {
    const uint8_t byte = *at;
    const bool is_segment = (byte & 0xe7) == 0x26 || byte == 0x64 || byte == 0x65;
    if (byte == 0x66) {
      head.is_short = true;
    } else if (!is_segment && byte != 0x67 && byte != 0xf0 && byte != 0xf2 &&
               byte != 0xf3) {
      break;
    }
  }
  if ((*at & 0xf0) == 0x40) head.rex = *at++;
  if (*at == 0xc5) {
    head.is_vector = true;
    head.map = 2;
    head.rex = static_cast<uint8_t>((at[1] & 0x80) != 0 ? 0 : 4);
    at += 2;
  } else if (*at == 0xc4 || *at == 0x62) {
    head.is_vector = true;
    head.map = static_cast<uint8_t>((at[1] & 7) + 1);
    head.rex = static_cast<uint8_t>(~at[1] >> 5 & 7);
    at += *at == 0xc4 ? 3 : 4;
  } else if (*at == 0x0f) {
    head.map = 2;
    ++at;
    if (*at == 0x38 || *at == 0x3a) head.map = *at++ == 0x38 ? 3 : 4;
  }
  head.opcode = at;
  return head;
}

Form form_of(const Head& head) {
  const uint8_t opcode = *head.opcode;
  switch (head.map) {
    case 1:
      return form_of_one_byte(opcode, head.opcode[1]);
    case 2:
      return head.is_vector && opcode != 0x77 && !has_byte_after_0f(opcode)
                 ? kOperands
                 : form_after_0f(opcode);
    case 3:
      return kOperands;
    case 4:
      return kOperandsByte;
    default:  // EVEX has more
      return kOperands;
  }
}

// Decodes the operands from `at` on; returns their end.
const unsigned char* take_operands(const unsigned char* at, uint8_t rex,
                                   DecodedInstruction& to) {
  const uint8_t byte = *at++;
  const int mode = byte >> 6;
  const int low = byte & 7;
  to.has_operands = true;
  to.reg = (byte >> 3 & 7) | (rex & 4) << 1;
  if (mode == 3) {
    to.rm = low | (rex & 1) << 3;
    return at;
  }
  to.is_memory = true;
  to.base = low | (rex & 1) << 3;
  bool has_long = mode == 2;
  if (low == 4) {
    const uint8_t scaled = *at++;
    to.base = (scaled & 7) | (rex & 1) << 3;
    to.has_index = (scaled & 0x38) != 0x20 || (rex & 2) != 0;
    if ((scaled & 7) == 5 && mode == 0) {
      to.base = DecodedInstruction::kNone;
      has_long = true;
    }
  } else if (low == 5 && mode == 0) {
    to.base = DecodedInstruction::kRip;
    has_long = true;
  }
  if (mode == 1) {
    to.displacement = signed_byte(*at++);
  } else if (has_long) {
    __builtin_memcpy(&to.displacement, at, sizeof to.displacement);
    at += sizeof to.displacement;
  }
  return at;
}

size_t size_of(Immediate immediate, const Head& head, bool is_wide) {
  switch (immediate) {
    case Immediate::kByte:
      return 1;
    case Immediate::kWord:
      return 2;
    case Immediate::kEnter:
      return 3;
    case Immediate::kOrdinary:
      return head.is_short && !is_wide ? 2 : 4;
    case Immediate::kFull:
      return is_wide ? 8 : head.is_short ? 2 : 4;
    default:
      return 0;
  }
}

}  // namespace

DecodedInstruction decode_instruction(const unsigned char* at) {
  const Head head = head_at(at);
  const Form form = form_of(head);
  DecodedInstruction result;
  if (form.immediate == Immediate::kBad) return result;
  result.map = head.is_vector ? 5 : head.map;
  result.opcode = *head.opcode;
  result.is_wide = (head.rex & 8) != 0;
  const unsigned char* end = head.opcode + 1;
  if (form.has_operands) {
    end = take_operands(end, head.rex, result);
  } else {
    result.rm = (result.opcode & 7) | (head.rex & 1) << 3;
  }
  const size_t size = size_of(form.immediate, head, result.is_wide);
  if (size == 1) {
    result.immediate = signed_byte(*end);
  } else if (size == 4) {
    int32_t value;
    __builtin_memcpy(&value, end, sizeof value);
    result.immediate = value;
  }
  result.length = static_cast<size_t>(end + size - at);
  return result;
}

}  // namespace arctrace::shim
