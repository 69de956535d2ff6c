// The calls of __fentry__ at the entry of functions (-pg -mfentry), found by reading the
// code: any bytes that look like one count if a function begins there by the unwind
// tables.
#include "src/base/text.hpp"
#include "writer_shim/arch/sleds.hpp"
#include "writer_shim/arch/x86_64/instructions.hpp"
#include "writer_shim/unwind/frame_rule_search.hpp"

namespace arctrace::shim {
namespace {

constexpr unsigned char kCall = 0xe8;                    // and a distance, like kJump
constexpr unsigned char kCallThrough[2] = {0xff, 0x15};  // call *distance(%rip)
constexpr unsigned char kJumpThrough[2] = {0xff, 0x25};  // jmp *distance(%rip)
constexpr unsigned char kBoundPrefix = 0xf2;             // before jumps of some PLTs
constexpr uintptr_t kInstructionMax = 16;

const unsigned char* bytes_at(uintptr_t address) {
  return reinterpret_cast<const unsigned char*>(address);
}

// The target of the instruction that ends at `end` with its distance.
uintptr_t target_of(uintptr_t end) {
  int32_t distance;
  __builtin_memcpy(&distance, bytes_at(end) - sizeof distance, sizeof distance);
  return end + static_cast<uintptr_t>(int64_t{distance});
}

bool stands_at(uintptr_t at, const unsigned char* bytes, size_t size) {
  return __builtin_memcmp(bytes_at(at), bytes, size) == 0;
}

// Whether there is a PLT entry at `at` that jumps through the slot.
bool is_entry_of(const ModuleImage& image, uintptr_t at, uintptr_t slot) {
  if (at < image.code.low || at >= image.code.high - kInstructionMax) return false;
  if (stands_at(at, kEndbr64, sizeof kEndbr64)) at += sizeof kEndbr64;
  if (*bytes_at(at) == kBoundPrefix) ++at;
  return stands_at(at, kJumpThrough, sizeof kJumpThrough) && target_of(at + 6) == slot;
}

// The end of the call at `at`; 0: there is none.
uintptr_t call_end(const ModuleImage& image, uintptr_t at, uintptr_t slot) {
  if (stands_at(at, kCallThrough, sizeof kCallThrough)) {
    return target_of(at + 6) == slot ? at + 6 : 0;
  }
  const bool is_call = *bytes_at(at) == kCall;
  return is_call && is_entry_of(image, target_of(at + 5), slot) ? at + 5 : 0;
}

}  // namespace

uintptr_t find_entry_call_slot(const ModuleImage& image) {
  const auto find = [&image](const ElfW(Rela) * relocations, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      if (equal(image.name_of(relocations[i]), "__fentry__")) {
        return reinterpret_cast<uintptr_t>(image.slot_of(relocations[i]));
      }
    }
    return uintptr_t{0};
  };
  const uintptr_t slot = find(image.jump_slots, image.jump_slot_count);
  return slot != 0 ? slot : find(image.relocations, image.relocation_count);
}

Sled next_entry_call(const ModuleImage& image, uintptr_t slot, uintptr_t from) {
  for (uintptr_t at = from; at < image.code.high - kInstructionMax; ++at) {
    const uintptr_t end = call_end(image, at, slot);
    if (end == 0) continue;
    const uintptr_t function = find_frame_rule(at).function;
    if (function == at || (function + sizeof kEndbr64 == at &&
                           stands_at(function, kEndbr64, sizeof kEndbr64))) {
      return {function, reinterpret_cast<unsigned char*>(at), end};
    }
  }
  return {};
}

}  // namespace arctrace::shim
