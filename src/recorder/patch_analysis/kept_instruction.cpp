#include "src/recorder/patch_analysis/kept_instruction.hpp"

#include <algorithm>
#include <cstring>

namespace arctrace {
namespace {

constexpr uint8_t kPush = 0x50;  // and a register in the low three bits
constexpr uint8_t kPop = 0x58;
constexpr uint8_t kStackPointer = 4;
constexpr auto kOtherRegisters = std::byte{0x41};  // before the opcode: r8 to r15
constexpr auto kLoadAddress = std::byte{0x8d};

uint8_t number(std::byte byte) { return std::to_integer<uint8_t>(byte); }

bool is_push(std::byte opcode) { return (number(opcode) & 0xf8) == kPush; }

std::byte pop_of(std::byte push) {
  return static_cast<std::byte>(kPop | (number(push) & 7));
}

// sub $N,%rsp becomes lea N(%rsp),%rsp, which leaves the flags alone.
KeptInstruction undo_of_room(std::span<const std::byte> bytes, bool is_short) {
  KeptInstruction kept;
  int32_t room = 0;
  if (is_short) {
    // Where this is positive it is the number with its sign.
    room = number(bytes[3]) <= INT8_MAX ? number(bytes[3]) : 0;
  } else {
    std::memcpy(&room, &bytes[3], sizeof room);
  }
  if (room <= 0) return kept;
  kept.stack_bytes = static_cast<uint64_t>(room);
  const auto modrm = std::byte{static_cast<uint8_t>(is_short ? 0x64 : 0xa4)};
  kept.undo = {bytes[0], kLoadAddress, modrm, std::byte{0x24}};
  kept.undo.insert(kept.undo.end(), bytes.begin() + 3, bytes.end());
  return kept;
}

}  // namespace

KeptInstruction undo_of(std::span<const std::byte> bytes) {
  constexpr std::byte kShortRoom[] = {std::byte{0x48}, std::byte{0x83}, std::byte{0xec}};
  constexpr std::byte kRoom[] = {std::byte{0x48}, std::byte{0x81}, std::byte{0xec}};
  const auto begins = [bytes](const std::byte(&opcode)[3]) {
    return std::equal(std::begin(opcode), std::end(opcode), bytes.begin());
  };
  switch (bytes.size()) {
    case 1:
      if (!is_push(bytes[0]) || number(bytes[0]) == (kPush | kStackPointer)) break;
      return {{pop_of(bytes[0])}, sizeof(uint64_t)};
    case 2:
      if (bytes[0] != kOtherRegisters || !is_push(bytes[1])) break;
      return {{bytes[0], pop_of(bytes[1])}, sizeof(uint64_t)};
    case 4:
      if (begins(kShortRoom)) return undo_of_room(bytes, true);
      break;
    case 7:
      if (begins(kRoom)) return undo_of_room(bytes, false);
      break;
    default:
      break;
  }
  return {};
}

}  // namespace arctrace
