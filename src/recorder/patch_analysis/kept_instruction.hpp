// A function's first instruction stays in its place, before the jump, where that can be:
// a uprobe's breakpoint stands on its first byte, the kernel executes what the file has
// there, and goes on with the jump. What the instruction has done is either no matter to
// what has the call recorded, or it is taken back and done again in the trampoline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace arctrace {

// What pushes a register, or makes room below the stack pointer.
inline constexpr size_t kUndoneBytesMax = 7;

struct KeptInstruction {
  std::vector<std::byte> undo;  // the code that takes it back
  uint64_t stack_bytes = 0;     // by how much it moves the stack pointer
};

// Empty code: the instruction, which `bytes` are, cannot be taken back.
KeptInstruction undo_of(std::span<const std::byte> bytes);

}  // namespace arctrace
