#include "src/recorder/patch_analysis/instruction.hpp"

#include <Zydis/Decoder.h>

namespace arctrace {
namespace {

// Without operands, which cost half of the time: lengths, opcodes, and the fields that
// are relative to rip are known without them.
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

// Opcodes of one byte.
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

// Opcodes after 0F.
Flow flow_of_0f(uint8_t opcode) {
  if (opcode >= 0x80 && opcode <= 0x8F) return Flow::kBranch;
  if (opcode == 0x0B || opcode == 0xB9 || opcode == 0xFF) return Flow::kTrap;
  if (opcode == 0x07 || opcode == 0x35) return Flow::kReturn;  // sysret, sysexit
  return Flow::kNext;
}

// The memory operand, from the bytes that encode it.
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

}  // namespace

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
  } else if (is_legacy && in.opcode_map == ZYDIS_OPCODE_MAP_0F) {
    out.flow = flow_of_0f(in.opcode);
    out.is_endbr = in.mnemonic == ZYDIS_MNEMONIC_ENDBR64;
  }
  if ((in.attributes & ZYDIS_ATTRIB_HAS_MODRM) != 0) read_memory(in, address, out);
  const auto& immediate = in.raw.imm[0];
  if (immediate.size == 32) out.immediate = static_cast<uint32_t>(immediate.value.u);
  if (immediate.is_relative != 0) {
    out.has_target = true;
    out.target = address + in.length + static_cast<uint64_t>(immediate.value.s);
  }
  // What this file does not know as a jump is nothing that may be moved.
  if (immediate.is_relative != 0 && out.flow == Flow::kNext)
    out.flow = Flow::kTransaction;
  return true;
}

}  // namespace arctrace
