// The unwind rules of instructions that were copied elsewhere: those of the originals, at
// the addresses of the copies.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/recorder/patch_analysis/patch_plan.hpp"
#include "src/recorder/patch_analysis/unwind_table.hpp"

namespace arctrace {

// A copied instruction: the offsets of the original from the function's first byte, and
// of the copy from the beginning of the code that the rules are for.
struct MovedInstruction {
  uint64_t from, to;
};

// The instructions (DW_CFA_*) for an entry about the copies, with a code alignment of 1.
// `moved` is ascending; its last element is what follows the last copy. What the original
// says for the first one holds from the offset `begin` on. nullopt: an instruction is
// unknown or broken, or a rule begins between two of `moved`.
std::optional<std::vector<std::byte>> moved_rules_untrusted(
    const UnwindTable& unwind, const UnwindTable::Entry& entry, uint64_t function,
    std::span<const MovedInstruction> moved, uint64_t begin);

}  // namespace arctrace
