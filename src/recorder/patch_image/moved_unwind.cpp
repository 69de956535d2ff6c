// Rules are copied as they are, but for those that advance the address, which are written
// anew.
#include "src/recorder/patch_image/moved_unwind.hpp"

#include <algorithm>

#include "src/recorder/patch_analysis/frame_opcodes.hpp"
#include "src/recorder/patch_analysis/unwind_bytes.hpp"

namespace arctrace {
namespace {

// How many numbers in LEB128 follow an opcode, or that a block follows.
enum class Operands : uint8_t { kUnknown, kNone, kOne, kTwo, kBlock, kOneAndBlock };

Operands operands_of(uint8_t opcode) {
  switch (opcode) {
    case kNop:
    case kRememberState:
    case kRestoreState:
      return Operands::kNone;
    case kRestoreExtended:
    case kUndefined:
    case kSameValue:
    case kDefCfaRegister:
    case kDefCfaOffset:
    case kDefCfaOffsetSf:
    case kGnuArgsSize:
      return Operands::kOne;
    case kOffsetExtended:
    case kRegister:
    case kDefCfa:
    case kOffsetExtendedSf:
    case kDefCfaSf:
    case kValOffset:
    case kValOffsetSf:
    case kGnuNegativeOffsetExtended:
      return Operands::kTwo;
    case kDefCfaExpression:
      return Operands::kBlock;
    case kExpression:
    case kValExpression:
      return Operands::kOneAndBlock;
    default:
      return Operands::kUnknown;
  }
}

// Skips an instruction's operands. False: it is unknown.
bool skip_operands(uint8_t opcode, UnwindByteReader& in) {
  switch (opcode >> 6) {
    case 2:  // DW_CFA_offset
      in.uleb();
      return true;
    case 3:  // DW_CFA_restore
      return true;
    default:
      break;
  }
  switch (operands_of(opcode)) {
    case Operands::kNone:
      return true;
    case Operands::kTwo:
      in.uleb();
      [[fallthrough]];
    case Operands::kOne:
      in.uleb();
      return true;
    case Operands::kOneAndBlock:
      in.uleb();
      [[fallthrough]];
    case Operands::kBlock:
      in.skip(in.uleb());
      return true;
    case Operands::kUnknown:
      break;
  }
  return false;
}

// By how much the instruction advances the address, in units of the code alignment;
// nullopt: it does something else.
std::optional<uint64_t> advance_of(uint8_t opcode, UnwindByteReader& in) {
  if (opcode >> 6 == 1) return opcode & 0x3F;
  switch (opcode) {
    case kAdvanceLoc1:
      return in.number<uint8_t>();
    case kAdvanceLoc2:
      return in.number<uint16_t>();
    case kAdvanceLoc4:
      return in.number<uint32_t>();
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<std::vector<std::byte>> moved_rules_untrusted(
    const UnwindTable& unwind, const UnwindTable::Entry& entry, uint64_t function,
    std::span<const MovedInstruction> moved, uint64_t begin) {
  const uint64_t alignment = unwind.common_rules(entry).code_alignment;
  std::vector<std::byte> rules;
  UnwindByteReader in(entry.program, 0);
  uint64_t address = entry.range.start;
  uint64_t written = begin;  // the offset up to which the written rules have advanced
  uint64_t wanted = begin;
  while (!in.at_end()) {
    const std::span<const std::byte> rest = in.rest();
    const auto opcode = in.number<uint8_t>();
    if (const auto advance = advance_of(opcode, in)) {
      address += *advance * alignment;
      if (!in.good() || address > function + moved.back().from) break;
      if (address <= function + moved.front().from) continue;
      const auto found = std::find_if(
          moved.begin(), moved.end(),
          [&](const MovedInstruction& one) { return function + one.from == address; });
      if (found == moved.end()) return std::nullopt;
      wanted = found->to;
      continue;
    }
    if (!skip_operands(opcode, in) || !in.good()) return std::nullopt;
    if (opcode == kNop) continue;
    if (wanted != written) {
      if (wanted - written > UINT8_MAX) return std::nullopt;
      rules.push_back(std::byte{kAdvanceLoc1});
      rules.push_back(static_cast<std::byte>(wanted - written));
      written = wanted;
    }
    rules.insert(rules.end(), rest.begin(),
                 rest.begin() + static_cast<ptrdiff_t>(rest.size() - in.rest().size()));
  }
  if (!in.good()) return std::nullopt;
  return rules;
}

}  // namespace arctrace
