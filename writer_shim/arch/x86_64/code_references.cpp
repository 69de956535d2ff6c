// Instructions have no fixed length here, so every byte may be a ModRM byte before a
// displacement from the instruction pointer. Eight are tested at once.
#include "writer_shim/arch/code_references.hpp"

namespace arctrace::shim {
namespace {

constexpr unsigned char kOpcode = 0xff;
constexpr unsigned char kCallByDistance = 0x15;  // the ModRM byte of call *d(%rip)
constexpr unsigned char kJumpByDistance = 0x25;  // and of jmp *d(%rip)
constexpr uintptr_t kDisplacement = 4;

// Whether it is the linker's PLT entry: "jmp *d(%rip); xchg %ax,%ax", 8 aligned bytes.
bool is_plt_entry(const unsigned char* displacement) {
  return (reinterpret_cast<uintptr_t>(displacement) - 2) % 8 == 0 &&
         displacement[4] == 0x66 && displacement[5] == 0x90;
}

// A ModRM byte of an operand that is addressed from the instruction pointer.
constexpr uint64_t kEachByte = 0x0101010101010101;
constexpr uint64_t kModRmMask = 0xc7;
constexpr uint64_t kModRm = 0x05;

// Sets the high bit of each of the eight bytes that may be one; now and then of another.
uint64_t find_mod_rm(const unsigned char* bytes) {
  uint64_t word;
  __builtin_memcpy(&word, bytes, sizeof word);
  const uint64_t difference = (word & kModRmMask * kEachByte) ^ kModRm * kEachByte;
  return (difference - kEachByte) & ~difference & 0x80 * kEachByte;
}

struct Slots {
  SlotUse* uses;
  size_t count;
  uintptr_t first;
  uintptr_t last;
};

// Notes the use by what may be a displacement at `at`.
void see_displacement(const Slots& slots, uintptr_t at) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(at);
  int32_t displacement;
  __builtin_memcpy(&displacement, bytes, kDisplacement);
  const uintptr_t target =
      at + kDisplacement + static_cast<uintptr_t>(int64_t{displacement});
  // An immediate operand of up to 4 bytes may follow in the instruction.
  if (target + 4 - slots.first > slots.last - slots.first + 4) return;
  if (SlotUse* use = find_use(slots.uses, slots.count, target); use != nullptr) {
    const bool is_call = bytes[-2] == kOpcode && bytes[-1] == kCallByDistance;
    const bool is_jump = bytes[-2] == kOpcode && bytes[-1] == kJumpByDistance;
    if (is_jump && use->jump == nullptr && is_plt_entry(bytes)) {
      use->jump = reinterpret_cast<uint64_t*>(at - 2);
    } else if (is_call || is_jump) {
      use->is_called = true;
    } else {
      use->is_read = true;
    }
  }
  for (uintptr_t immediate = 1; immediate <= 4; ++immediate) {
    SlotUse* use = find_use(slots.uses, slots.count, target + immediate);
    if (use != nullptr) use->is_read = true;
  }
}

}  // namespace

void find_slot_uses(const ModuleImage& image, SlotUse* uses, size_t count) {
  constexpr uintptr_t kAtOnce = 8;
  if (count == 0 || image.code.high - image.code.low < 4 * kAtOnce) return;
  const Slots slots = {uses, count, reinterpret_cast<uintptr_t>(uses[0].slot),
                       reinterpret_cast<uintptr_t>(uses[count - 1].slot)};
  // The last bytes are not read: no whole instruction of this kind has room there.
  const uintptr_t end = image.code.high - 3 * kAtOnce;
  for (uintptr_t at = image.code.low + 1; at < end; at += kAtOnce) {
    uint64_t found = find_mod_rm(reinterpret_cast<const unsigned char*>(at));
    for (; found != 0; found &= found - 1) {
      const auto byte = static_cast<uintptr_t>(__builtin_ctzll(found)) / 8;
      see_displacement(slots, at + byte + 1);
    }
  }
}

}  // namespace arctrace::shim
