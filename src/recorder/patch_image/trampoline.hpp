// The code in the image to which the jump at a function's entry leads: it has the call
// recorded, or skips that, and goes on in the copies of the instructions that the jump
// covers. The copies have unwind rules of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/recorder/patch_analysis/patch_plan.hpp"
#include "src/recorder/patch_analysis/unwind_table.hpp"
#include "src/recorder/patch_image/image_bytes.hpp"
#include "src/shim_protocol/patching.hpp"

namespace arctrace::recorder {

// The unwind rules of instructions that were copied elsewhere: those of the originals, at
// the addresses of the copies.

// A copied instruction: the offsets of the original from the function's first byte, and
// of the copy from the beginning of the code that the rules are for.
struct MovedInstruction {
  uint64_t from, to;
};

// The instructions (DW_CFA_*) for an entry about the copies, with a code alignment of 1.
// `moved` is ascending; its last element is the end of the last copy. The original's rule
// for the first one applies from the offset `begin` on. nullopt: an instruction is
// unknown or broken, or a rule begins between two of `moved`.
struct MovedRules {
  std::vector<std::byte> program;
  uint64_t advanced_to;  // the offset from which the last of them applies
};
std::optional<MovedRules> moved_rules_untrusted(const UnwindTable& unwind,
                                                const UnwindTable::Entry& entry,
                                                uint64_t function,
                                                std::span<const MovedInstruction> moved,
                                                uint64_t begin);

// The code begins with a jump through the function's gate. Then come the code that undoes
// the first instruction, if that stays before the jump and has to be undone; the code
// that has the call recorded; and the copies. A jump to the code behind the originals is
// the end, or, if the last one is a call, the address of that code, which the copy of the
// call pushes.
inline constexpr size_t kGateJumpSize = 7;
inline constexpr unsigned char kJumpOpcode = 0xe9;  // followed by a distance of 32 bits
inline constexpr size_t kCallPushSize = 6;          // of a copied call: then it jumps

// Whether the last one of the copied instructions is a call.
bool ends_with_call(const FunctionPlan& plan);

// The copies, with their offsets from the first byte of the code.
struct TrampolineShape {
  KeptInstruction kept;
  uint64_t copy_at = 0;
  std::vector<MovedInstruction> moved;
  uint64_t size = 0;  // of the code, in bytes
};
TrampolineShape trampoline_shape(const FunctionPlan& plan);

// Addresses in the process.
struct TrampolinePlaces {
  uint64_t low = 0;     // of the image's first byte
  uint64_t bias = 0;    // from the program's file addresses to those of the process
  uint64_t gate = 0;    // of the function
  uint64_t entry = 0;   // its element of PatchSlots::entries
  uint64_t begins = 0;  // PatchSlots::begins
};
// Adds the code of a function at the end of the image's bytes.
void add_trampoline(const FunctionPlan& plan, const TrampolinePlaces& places,
                    ImageBytes& out);

}  // namespace arctrace::recorder
