// The result of an analysis of a module: for each function whether a jump of five bytes
// can take the place of its first instructions, which these are and how each is moved to
// another address, or why the function is skipped.
#pragma once

#include <arctrace/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/recorder/patch_analysis/module_code.hpp"

namespace arctrace::recorder {

// A function's first instruction stays in its place, before the jump, where that can be:
// a uprobe's breakpoint stands on its first byte, the kernel executes what the file has
// there, and goes on with the jump. The instruction's effect either does not matter to
// the code that records the call, or is undone, and the instruction is done again in the
// trampoline.

// An instruction that pushes a register, or reserves space below the stack pointer.
inline constexpr size_t kUndoneBytesMax = 7;

struct KeptInstruction {
  std::vector<std::byte> undo;  // the code that undoes the instruction
  uint64_t stack_bytes = 0;     // by how much it moves the stack pointer
};

// How to undo the instruction `bytes`. Empty code: it cannot be undone.
KeptInstruction undo_of(std::span<const std::byte> bytes);

// Whether a function can be patched, or the rule that forbids it; the rules are checked
// in this order.
enum class PatchVerdict : uint8_t {
  kPatchable = ARCTRACE_PATCH_DONE,
  kSlotStub = ARCTRACE_PATCH_SLOT_STUB,  // a jump through a slot, as in a PLT: no
                                         // function of the module's own
  kPart = ARCTRACE_PATCH_PART,  // split off by the compiler: entered by jumps only
  kNoFrameInfo = ARCTRACE_PATCH_NO_FRAME_INFO,  // no call frame information at its entry
  kOtherFrame = ARCTRACE_PATCH_OTHER_FRAME,     // its return address is not at the top of
                                                // the stack at its entry
  kTooShort = ARCTRACE_PATCH_TOO_SHORT,         // fewer bytes than a jump has
  kNotCode = ARCTRACE_PATCH_NOT_CODE,           // it holds bytes that are no instruction
  kCall = ARCTRACE_PATCH_CALL,  // a call in the bytes is indirect, or returns into them
  kEndsEarly =
      ARCTRACE_PATCH_ENDS_EARLY,  // it may end before it has as many bytes as a jump
  kNotMovable = ARCTRACE_PATCH_NOT_MOVABLE,       // an instruction that cannot be moved
  kLoopsToEntry = ARCTRACE_PATCH_LOOPS_TO_ENTRY,  // it jumps to its own first instruction
  kEnteredInside = ARCTRACE_PATCH_ENTERED_INSIDE,  // a jump leads between the bytes
  kPointedInside =
      ARCTRACE_PATCH_POINTED_INSIDE,  // a pointer or a jump table leads between the bytes
  kUnknownTargets = ARCTRACE_PATCH_UNKNOWN_TARGETS,  // a jump table that was not found
                                                     // may lead between the bytes
};
inline constexpr size_t kPatchVerdicts = 14;

// The jump that a patch puts at an entry.
inline constexpr size_t kPatchJumpBytes = 5;
// The size of whole instructions that the jump covers: four bytes, and the longest
// instruction.
inline constexpr size_t kInstructionBytesMax = 15;
inline constexpr size_t kDisplacedBytesMax = 4 + kInstructionBytesMax;
inline constexpr size_t kDisplacedMax = kPatchJumpBytes;

// How a displaced instruction is written at another address.
enum class MovedAs : uint8_t {
  kCopy,         // byte by byte
  kRipRelative,  // copied; its 32-bit displacement at `field` leads to `target`
  kJump,         // as jmp rel32 to `target`
  kBranch,       // as jcc rel32 to `target`; its condition is in the low four bits of the
                 // opcode
  kCall,         // the last one: as a push of the address behind it, and jmp rel32 to
                 // `target`, which then returns to where it would have
};

// How the bytes before the jump are treated.
enum class KeptAs : uint8_t {
  kNothing,  // there are none, or an endbr64
  kStays,    // the first instruction, whose effect does not matter to the recording code
  kUndone,   // the first instruction: it is undone, and done again in the trampoline
};

struct DisplacedInstruction {
  uint8_t offset = 0;  // from the patched address
  uint8_t length = 0;
  MovedAs moved_as = MovedAs::kCopy;
  uint8_t field = 0;  // offset of the displacement in the instruction; kRipRelative only
  uint64_t target = 0;  // file address; 0 for kCopy
  bool operator==(const DisplacedInstruction&) const = default;
};

// The plan of a function. Addresses are file addresses, as p_vaddr is.
struct FunctionPlan {
  uint64_t start = 0;
  uint64_t size = 0;  // bytes; at least 1
  std::string name;   // the linker's; empty: not known
  PatchVerdict verdict = PatchVerdict::kPatchable;
  // The members below are set for kPatchable only.
  //
  // The function reads or changes its return address: a patch may record the entry and
  // must not change the return address.
  bool entry_only = false;
  // The function calls, be it by a jump, loops or enters the kernel: time can be spent in
  // it, however small it is.
  bool may_last = false;
  KeptAs kept_as = KeptAs::kNothing;
  uint8_t kept = 0;  // bytes before the jump: an endbr64, the first instruction, or none
  uint8_t displaced = 0;  // bytes, of whole instructions, from start + kept on
  uint8_t instruction_count = 0;
  std::array<DisplacedInstruction, kDisplacedMax> instructions;
  // The bytes at start + kept as the file has them: if the process has others there, it
  // is not patched.
  std::array<std::byte, kDisplacedBytesMax> original{};
  std::array<std::byte, kUndoneBytesMax> undone{};  // the first instruction; kUndone only

  bool operator==(const FunctionPlan&) const = default;
};

struct PatchPlan {
  std::vector<std::byte> build_id;  // empty: the module has none
  // A stamp of the module's code and unwind tables, and of the file with its names: with
  // another stamp, there is another plan.
  uint64_t stamp = 0;
  std::vector<FunctionPlan> functions;  // by start; they do not overlap
  // The parts of the module that could not be read, and so were not used.
  std::vector<std::string> findings;

  bool operator==(const PatchPlan&) const = default;
};

// Makes the plan of an x86-64 module, without its build-id and stamp: decides for each
// function by a list of rules whether its entry can be patched with a jump. Costs some 60
// ns for each instruction of the module.
PatchPlan analyse_patches_untrusted(const ModuleCode& module);

}  // namespace arctrace::recorder
