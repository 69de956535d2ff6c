// The code in the image to which the jump at a function's entry leads: it has the call
// recorded, or goes past that to the copies of the instructions that the jump covers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/recorder/patch_analysis/patch_plan.hpp"
#include "src/recorder/patch_image/image_bytes.hpp"
#include "src/recorder/patch_image/moved_unwind.hpp"
#include "src/shim_protocol/patch_table.hpp"

namespace arctrace {

// The code begins with a jump through the function's gate; what takes the first
// instruction back, if it stays before the jump and has to be; and what has the call
// recorded. Then come the copies.
inline constexpr size_t kGateJumpSize = 7;
inline constexpr unsigned char kJumpOpcode = 0xe9;  // followed by a distance of 32 bits

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

}  // namespace arctrace
