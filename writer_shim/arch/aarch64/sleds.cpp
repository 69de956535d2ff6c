// Sleds are one NOP, or XRay's branch over seven; the gated jump uses x16 and x17, which
// are free at a function's entry.
#include "writer_shim/arch/sleds.hpp"

#include "src/api/shim_interface.h"
#include "writer_shim/arch/aarch64/instructions.hpp"
#include "writer_shim/arch/jump_memory.hpp"
#include "writer_shim/plt/call_table.hpp"
#include "writer_shim/unwind/frame_rule_search.hpp"

namespace arctrace::shim {
namespace {

constexpr uint32_t kGatedJump[] = {
    0x58000010,  // ldr x16, gate
    0xb9400210,  // ldr w16, [x16]
    0x36000070,  // tbz w16, #0 (ARCTRACE_GATE_FUNCTIONS), 3 words on
    0x58000070,  // ldr x16, stub, 3 words on
    0xd61f0200,  // br x16
    kBranch      // to the function
};
constexpr size_t kGoesOn = 5;
constexpr uintptr_t kWord = sizeof(uint32_t);
static_assert(ARCTRACE_GATE_FUNCTIONS == 1);
static_assert(sizeof kGatedJump == sizeof GatedJump::code &&
              offsetof(GatedJump, stub) == (3 + 3) * sizeof(uint32_t));

int64_t words_from(uintptr_t at, uintptr_t to) {
  return static_cast<int64_t>(to - at) / static_cast<int64_t>(kWord);
}

// Writes a branch from `at` to `to`. False: it is too far away.
bool write_branch(uintptr_t at, uintptr_t to) {
  const int64_t distance = words_from(at, to);
  if (distance < -kBranchWords || distance >= kBranchWords) return false;
  const uint32_t word = kBranch | (static_cast<uint32_t>(distance) & kBranchMask);
  __builtin_memcpy(reinterpret_cast<void*>(at), &word, sizeof word);
  return true;
}

uintptr_t address_in(const GatedJump& jump, size_t word) {
  return reinterpret_cast<uintptr_t>(jump.code) + word * kWord;
}

}  // namespace

Sled find_sled(uintptr_t at, const AddressRange& code, FunctionSymbols& symbols) {
  const auto holds = [&code](uintptr_t address, uint32_t word) {
    return code.contains(address) && code.contains(address + kWord) &&
           *reinterpret_cast<const uint32_t*>(address) == word;
  };
  const auto sled = [](uintptr_t function, uintptr_t begin) {
    return Sled{function, reinterpret_cast<unsigned char*>(begin), begin + kWord};
  };
  if (!holds(at, kNop)) return {};
  for (uintptr_t begin = at; holds(begin, kNop) || holds(begin, kBranchTarget);
       begin += kWord) {
    uintptr_t function = find_frame_rule(begin).function;
    if (function == 0) {
      const bool has_pad = holds(begin - kWord, kBranchTarget);
      const uintptr_t first = has_pad ? begin - kWord : begin;
      if (symbols.begins_at(first)) function = first;
    }
    const bool is_here = function == begin || function + kWord == begin;
    if (is_here && holds(begin, kNop)) return sled(function, begin);
  }
  // gcc 12's unwind tables begin after the room. Without symbols NOPs before the function
  // are then taken for its room, and are not reached.
  return sled(holds(at - kWord, kBranchTarget) ? at - kWord : at, at);
}

Sled find_xray_sled(uintptr_t at, uintptr_t function, const AddressRange& code) {
  constexpr size_t kWords = 8;  // a branch over seven NOPs
  constexpr size_t kSize = kWords * sizeof(uint32_t);
  if (at % sizeof(uint32_t) != 0 || !code.contains(at) || code.high - at < kSize) {
    return {};
  }
  const auto* words = reinterpret_cast<const uint32_t*>(at);
  // A sled elsewhere comes after a hook of another kind.
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

// Here mcount is called in the middle of functions only.
uintptr_t find_entry_call_slot(const ModuleImage& /*image*/) { return 0; }

Sled next_entry_call(const ModuleImage& /*image*/, uintptr_t /*slot*/,
                     uintptr_t /*from*/) {
  return {};
}

// Exits are seen by calling functions through.
unsigned char* find_xray_exit(uintptr_t /*at*/, const AddressRange& /*code*/) {
  return nullptr;
}
ReturnCalls::ReturnCalls(const ModuleImage& image) : image_(image), slot_(0) {}
bool ReturnCalls::are_in(const Sled& /*sled*/) { return false; }
void make_return_jump(ReturnJump& /*jump*/, uintptr_t /*hook*/) {}
bool lead_to_return_jump(unsigned char* /*exit*/, const ReturnJump& /*jump*/) {
  return false;
}

bool make_jump(GatedJump& jump, uintptr_t gate, const Sled& sled) {
  constexpr int64_t kLoadWords = int64_t{1} << 18;  // a load reaches 1 MiB
  const int64_t distance = words_from(address_in(jump, 0), gate);
  if (distance < -kLoadWords) return false;
  __builtin_memcpy(jump.code, kGatedJump, sizeof jump.code);
  const uint32_t load = kGatedJump[0] | (static_cast<uint32_t>(distance) & 0x7ffff) << 5;
  __builtin_memcpy(jump.code, &load, sizeof load);
  return write_branch(address_in(jump, kGoesOn), sled.end);
}

// By way of the jump, because there is no landing pad after the room of a function in
// guarded pages.
uintptr_t continue_address(const GatedJump& jump, const Sled& /*sled*/) {
  return address_in(jump, kGoesOn);
}

// An instruction is as long as the jump: the function just goes on without it.
bool find_landing_distance(const Sled& /*sled*/, size_t /*i*/, intptr_t& /*distance*/) {
  return false;
}

bool lead_to_jump(const Sled& sled, const GatedJump& jump,
                  intptr_t /*landing_distance*/) {
  return write_branch(reinterpret_cast<uintptr_t>(sled.begin), address_in(jump, 0));
}

uintptr_t stub_of_jump(uintptr_t function) {
  const auto* at = reinterpret_cast<const uint32_t*>(function);
  if (*at == kBranchTarget) ++at;
  if ((*at & ~kBranchMask) != kBranch) return 0;
  const auto target = reinterpret_cast<uintptr_t>(at) +
                      static_cast<uintptr_t>(signed_bits(*at, 0, 26)) * kWord;
  const auto* jump = reinterpret_cast<const GatedJump*>(target);
  const bool is_one = target % alignof(GatedJump) == 0 && is_jump_memory(target) &&
                      __builtin_memcmp(jump->code + kWord, kGatedJump + 1,
                                       (kGoesOn - 1) * sizeof(uint32_t)) == 0 &&
                      is_stub(jump->stub);
  return is_one ? jump->stub : 0;
}

void finish_code(uintptr_t address, size_t size) {
  auto* code = reinterpret_cast<char*>(address);
  __builtin___clear_cache(code, code + size);
}

}  // namespace arctrace::shim
