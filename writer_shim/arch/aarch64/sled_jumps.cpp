// Writes the jumps of sleds on aarch64. The gated jump uses x16 and x17, which are free
// at a function's entry.
#include "writer_shim/arch/sled_jumps.hpp"

#include <sys/mman.h>

#include "src/api/shim_interface.h"
#include "src/base/shared_atomics.hpp"
#include "writer_shim/arch/aarch64/instructions.hpp"
#include "writer_shim/arch/call_stubs.h"
#include "writer_shim/arch/code_changes.hpp"
#include "writer_shim/base/mappings.hpp"

namespace arctrace::shim {

// Replaces the function's return by a branch, in one store.
bool make_function_jump(uintptr_t from, uintptr_t target) {
  auto* code = reinterpret_cast<uint32_t*>(from);
  if (*code == kBranchTarget) ++code;
  const auto address = reinterpret_cast<uintptr_t>(code);
  const auto distance = static_cast<int64_t>(target - address) / 4;
  // The page stays executable, because it holds other functions too.
  if (*code != kReturn || distance < -kBranchWords || distance >= kBranchWords ||
      !protect(address, sizeof *code, PROT_READ | PROT_WRITE | PROT_EXEC)) {
    return false;
  }
  // It is one instruction, so a thread that runs it sees the return or the branch.
  IpcAtomics::store_release(*code,
                            kBranch | (static_cast<uint32_t>(distance) & kBranchMask));
  auto* changed = reinterpret_cast<char*>(address);
  __builtin___clear_cache(changed, changed + sizeof *code);
  protect(address, sizeof *code, PROT_READ | PROT_EXEC);
  return true;
}

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

// Makes a branch from `at` to `to`. False: it is too far away.
bool make_branch(uintptr_t at, uintptr_t to, uint32_t& word) {
  const int64_t distance = words_from(at, to);
  word = kBranch | (static_cast<uint32_t>(distance) & kBranchMask);
  return distance >= -kBranchWords && distance < kBranchWords;
}

bool write_branch(uintptr_t at, uintptr_t to) {
  uint32_t word;
  if (!make_branch(at, to, word)) return false;
  __builtin_memcpy(reinterpret_cast<void*>(at), &word, sizeof word);
  return true;
}

uintptr_t address_in(const GatedJump& jump, size_t word) {
  return reinterpret_cast<uintptr_t>(jump.code) + word * kWord;
}

}  // namespace

// Exits are seen by calling functions through, so there are no return jumps.
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

// The way leads by the jump, because there is no landing pad after the NOP area of a
// function in guarded pages.
uintptr_t continue_address(const GatedJump& jump, const Sled& /*sled*/) {
  return address_in(jump, kGoesOn);
}

// An instruction is as long as the jump, so the function simply goes on without the jump.
bool find_landing_distance(const Sled& /*sled*/, size_t /*i*/, intptr_t& /*distance*/) {
  return false;
}

bool lead_to_jump(const Sled& sled, const GatedJump& jump,
                  intptr_t /*landing_distance*/) {
  uint32_t word;
  return make_branch(reinterpret_cast<uintptr_t>(sled.begin), address_in(jump, 0),
                     word) &&
         change_code(sled.begin, reinterpret_cast<const unsigned char*>(&word),
                     sizeof word);
}

bool outlasts_probes(const Sled& /*sled*/) { return false; }

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
