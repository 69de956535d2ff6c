// Decodes instructions by Zydis.
#include "src/recorder/patch_analysis/instruction.hpp"

#include <Zydis/Decoder.h>

#include <algorithm>
#include <iterator>

namespace arctrace::recorder {
namespace {

// Decodes without operands, which cost half of the time: lengths, opcodes, and the fields
// that are relative to rip are known without them.
const ZydisDecoder& decoder() {
  static const ZydisDecoder made = [] {
    ZydisDecoder decoder;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
    return decoder;
  }();
  return made;
}

using Flow = Instruction::Flow;

// The flow of opcodes of one byte.
Flow flow_of_default(const ZydisDecodedInstruction& in) {
  const uint8_t opcode = in.opcode;
  if (opcode >= 0x70 && opcode <= 0x7F) return Flow::kBranch;
  if (opcode >= 0xE0 && opcode <= 0xE3) return Flow::kShortBranch;
  switch (opcode) {
    case 0xE8:
      return Flow::kCall;
    case 0xE9:
    case 0xEB:
      return Flow::kJump;
    case 0xC2:
    case 0xC3:
    case 0xCA:
    case 0xCB:
    case 0xCF:
      return Flow::kReturn;
    case 0xCC:
    case 0xF1:
    case 0xF4:
      return Flow::kTrap;
    case 0xC7:
      return in.raw.modrm.reg == 7 ? Flow::kTransaction : Flow::kNext;
    case 0xFF:
      if (in.raw.modrm.reg == 2 || in.raw.modrm.reg == 3) return Flow::kCall;
      if (in.raw.modrm.reg == 4 || in.raw.modrm.reg == 5) return Flow::kIndirectJump;
      return Flow::kNext;
    default:
      return Flow::kNext;
  }
}

// The flow of opcodes after 0F.
Flow flow_of_0f(uint8_t opcode) {
  if (opcode >= 0x80 && opcode <= 0x8F) return Flow::kBranch;
  if (opcode == 0x0B || opcode == 0xB9 || opcode == 0xFF) return Flow::kTrap;
  if (opcode == 0x07 || opcode == 0x35) return Flow::kReturn;  // sysret, sysexit
  return Flow::kNext;
}

// Whether it is a string instruction with a prefix that repeats it. Attributes say this
// of no instruction that is decoded without operands.
bool is_repeated(const ZydisDecodedInstruction& in) {
  const bool is_string = (in.opcode >= 0xA4 && in.opcode <= 0xA7) ||
                         (in.opcode >= 0xAA && in.opcode <= 0xAF);
  if (!is_string) return false;
  return std::any_of(
      std::begin(in.raw.prefixes), std::begin(in.raw.prefixes) + in.raw.prefix_count,
      [](const auto& prefix) { return prefix.value == 0xF2 || prefix.value == 0xF3; });
}

// Reads the memory operand from the bytes that encode it.
void read_memory(const ZydisDecodedInstruction& in, uint64_t address, Instruction& out) {
  const auto& modrm = in.raw.modrm;
  const bool is_legacy = in.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY;
  const bool has_rex = is_legacy && (in.attributes & ZYDIS_ATTRIB_HAS_REX) != 0;
  if (modrm.mod == 3) {
    out.jumps_by_register = out.flow == Flow::kIndirectJump;
    return;
  }
  if (modrm.mod == 0 && modrm.rm == 5) {
    out.is_rip_relative = true;
    out.has_target = true;
    out.field = in.raw.disp.offset;
    out.target = address + in.length + static_cast<uint64_t>(in.raw.disp.value);
    out.is_movable = in.address_width == 64;
    return;
  }
  const bool extends_base = has_rex && in.raw.rex.B != 0;
  const bool extends_index = has_rex && in.raw.rex.X != 0;
  if (in.raw.disp.size != 0) out.displacement = static_cast<int32_t>(in.raw.disp.value);
  if (modrm.rm == 4) {
    const auto& sib = in.raw.sib;
    const bool has_index = sib.index != 4 || extends_index;
    if (sib.base == 5 && modrm.mod == 0) {
      out.plain_displacement = static_cast<uint32_t>(in.raw.disp.value);
    }
    if (is_legacy && sib.base == 4 && !extends_base && !has_index) {
      out.base = Instruction::Base::kStackPointer;
    }
    out.loads_table_offset = is_legacy && in.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
                             in.opcode == 0x63 && has_index && sib.scale == 2;
  } else if (is_legacy && modrm.rm == 5 && !extends_base) {
    out.base = Instruction::Base::kFramePointer;
  } else if (modrm.mod == 2) {
    out.plain_displacement = static_cast<uint32_t>(in.raw.disp.value);
  }
}

// Decodes with operands.
const ZydisDecoder& full_decoder() {
  static const ZydisDecoder made = [] {
    ZydisDecoder decoder;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return decoder;
  }();
  return made;
}

bool may_change(ZydisRegister written) {
  if (ZydisRegisterGetClass(written) == ZYDIS_REGCLASS_FLAGS) return true;
  switch (ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, written)) {
    case ZYDIS_REGISTER_RAX:
    case ZYDIS_REGISTER_RBX:
    case ZYDIS_REGISTER_RBP:
    case ZYDIS_REGISTER_R10:
    case ZYDIS_REGISTER_R11:
    case ZYDIS_REGISTER_R12:
    case ZYDIS_REGISTER_R13:
    case ZYDIS_REGISTER_R14:
    case ZYDIS_REGISTER_R15:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool changes_own_registers_untrusted(std::span<const std::byte> bytes) {
  constexpr ZydisAccessedFlagsMask kArithmetic = ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_PF |
                                                 ZYDIS_CPUFLAG_AF | ZYDIS_CPUFLAG_ZF |
                                                 ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_OF;
  ZydisDecodedInstruction in;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&full_decoder(), bytes.data(), bytes.size(),
                                           &in, operands))) {
    return false;
  }
  const ZydisAccessedFlags& flags = *in.cpu_flags;
  if (((flags.modified | flags.set_0 | flags.set_1 | flags.undefined) & ~kArithmetic) !=
      0) {
    return false;
  }
  for (size_t i = 0; i < in.operand_count; ++i) {
    const ZydisDecodedOperand& operand = operands[i];
    if ((operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0) continue;
    if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER || !may_change(operand.reg.value)) {
      return false;
    }
  }
  return true;
}

bool decode_untrusted(std::span<const std::byte> bytes, uint64_t address,
                      Instruction& out) {
  ZydisDecodedInstruction in;
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder(), nullptr, bytes.data(),
                                                  bytes.size(), &in))) {
    return false;
  }
  out = {};
  out.length = in.length;
  const bool is_legacy = in.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY;
  if (is_legacy && in.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT) {
    out.flow = flow_of_default(in);
    out.is_direct_call = in.opcode == 0xE8;
    out.is_lea = in.opcode == 0x8D;
    out.pops = (in.opcode >= 0x58 && in.opcode <= 0x5F) ||
               (in.opcode == 0x8F && in.raw.modrm.reg == 0);
    out.may_last = in.opcode == 0xCD || is_repeated(in);  // int
  } else if (is_legacy && in.opcode_map == ZYDIS_OPCODE_MAP_0F) {
    out.flow = flow_of_0f(in.opcode);
    out.is_endbr = in.mnemonic == ZYDIS_MNEMONIC_ENDBR64;
    out.may_last = in.opcode == 0x05 || in.opcode == 0x34;  // syscall, sysenter
  }
  if ((in.attributes & ZYDIS_ATTRIB_HAS_MODRM) != 0) read_memory(in, address, out);
  const auto& immediate = in.raw.imm[0];
  if (immediate.size == 32) out.immediate = static_cast<uint32_t>(immediate.value.u);
  if (immediate.is_relative != 0) {
    out.has_target = true;
    out.target = address + in.length + static_cast<uint64_t>(immediate.value.s);
  }
  // An instruction that this file does not know as a jump must not be moved.
  if (immediate.is_relative != 0 && out.flow == Flow::kNext)
    out.flow = Flow::kTransaction;
  return true;
}

}  // namespace arctrace::recorder
