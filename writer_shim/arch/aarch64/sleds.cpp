#include "writer_shim/arch/sleds.hpp"

#include "src/api/shim_interface.h"
#include "writer_shim/arch/aarch64/instructions.hpp"
#include "writer_shim/unwind/frame_rule.hpp"

namespace arctrace::shim {
namespace {

// x16 and x17 are free at a function's entry.
constexpr uint32_t kGatedJump[] = {
    0x58000010,  // ldr x16, gate
    0xb9400210,  // ldr w16, [x16]
    0x36000070,  // tbz w16, #0 (ARCTRACE_GATE_FUNCTIONS), 3 words on
    0x58000070,  // ldr x16, stub, 3 words on
    0xd61f0200,  // br x16
    kBranch      // to the function
};
constexpr size_t kGoesOn = 5;
static_assert(ARCTRACE_GATE_FUNCTIONS == 1);
static_assert(sizeof kGatedJump == sizeof GatedJump::code &&
              offsetof(GatedJump, stub) == (3 + 3) * sizeof(uint32_t));

int64_t words_from(const uint32_t* place, uintptr_t to) {
  return static_cast<int64_t>(to - reinterpret_cast<uintptr_t>(place)) / 4;
}

// Has `place` branch to `to`. False: it is too far away.
bool set_branch(uint32_t* place, uintptr_t to) {
  const int64_t distance = words_from(place, to);
  if (distance < -kBranchWords || distance >= kBranchWords) return false;
  *place = kBranch | (static_cast<uint32_t>(distance) & kBranchMask);
  return true;
}

}  // namespace

Sled find_sled(uintptr_t at, const AddressRange& code) {
  constexpr uintptr_t kWord = sizeof(uint32_t);
  const auto holds = [&code](uintptr_t address, uint32_t word) {
    return code.contains(address) && code.contains(address + kWord) &&
           *reinterpret_cast<const uint32_t*>(address) == word;
  };
  const auto sled = [](uintptr_t function, uintptr_t place) {
    return Sled{function, reinterpret_cast<unsigned char*>(place), place + kWord};
  };
  if (!holds(at, kNop)) return {};
  for (uintptr_t place = at; holds(place, kNop) || holds(place, kBranchTarget);
       place += kWord) {
    const uintptr_t function = find_frame_rule(place).function;
    const bool is_here = function == place || function + kWord == place;
    if (is_here && holds(place, kNop)) return sled(function, place);
  }
  // gcc 12's unwind tables begin behind the room. What stands before the function is then
  // taken for it, and is not reached.
  return sled(holds(at - kWord, kBranchTarget) ? at - kWord : at, at);
}

Sled find_xray_sled(uintptr_t at, uintptr_t function, const AddressRange& code) {
  constexpr size_t kWords = 8;  // a branch over seven NOPs
  constexpr size_t kSize = kWords * sizeof(uint32_t);
  if (at % sizeof(uint32_t) != 0 || !code.contains(at) || code.high - at < kSize) {
    return {};
  }
  const auto* words = reinterpret_cast<const uint32_t*>(at);
  // Elsewhere another kind of hook stands first.
  if (at != function && (at - function != sizeof(uint32_t) || !code.contains(function) ||
                         words[-1] != kBranchTarget)) {
    return {};
  }
  if (words[0] != (kBranch | kWords)) return {};
  for (size_t i = 1; i < kWords; ++i) {
    if (words[i] != kNop) return {};
  }
  return {function, reinterpret_cast<unsigned char*>(at), at + kSize};
}

bool make_jump(GatedJump& jump, uintptr_t gate, const Sled& sled) {
  __builtin_memcpy(jump.code, kGatedJump, sizeof jump.code);
  // It reaches 1 MiB.
  const int64_t distance = words_from(jump.code, gate);
  if (distance < -(int64_t{1} << 18)) return false;
  jump.code[0] |= (static_cast<uint32_t>(distance) & 0x7ffff) << 5;
  return set_branch(&jump.code[kGoesOn], sled.end);
}

// By way of the jump: behind the room of a function in guarded pages stands no landing
// pad.
uintptr_t goes_on_at(const GatedJump& jump, const Sled& /*sled*/) {
  return reinterpret_cast<uintptr_t>(&jump.code[kGoesOn]);
}

bool lead_to_jump(const Sled& sled, const GatedJump& jump) {
  return set_branch(reinterpret_cast<uint32_t*>(sled.begin),
                    reinterpret_cast<uintptr_t>(&jump));
}

void finish_code(uintptr_t address, size_t size) {
  auto* code = reinterpret_cast<char*>(address);
  __builtin___clear_cache(code, code + size);
}

}  // namespace arctrace::shim
