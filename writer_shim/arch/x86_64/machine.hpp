// See writer_shim/arch/machine.hpp.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>

namespace arctrace::shim::machine {

inline constexpr uint16_t kElfMachine = EM_X86_64;

// Relocations of slots: of a PLT entry's, and of one that code reads itself.
inline constexpr uint32_t kJumpSlot = R_X86_64_JUMP_SLOT;
inline constexpr uint32_t kDataSlot = R_X86_64_GLOB_DAT;

// A PLT entry may jump through the slot that code reads a function's address from.
inline constexpr bool kPltReadsDataSlots = true;

// Hooks at the entry of functions have them return to arctrace_exchanged_returns.
inline constexpr bool kExchangesReturns = true;

// In unwind tables.
inline constexpr uint64_t kStackPointerRegister = 7;
inline constexpr uint64_t kFramePointerRegister = 6;
inline constexpr uint64_t kReturnAddressRegister = 16;

// Where a function's return address stands: 8 bytes below its canonical frame address.
inline constexpr bool kReturnsBesideFramePointer = false;

// The code that a return address on the stack leads to.
inline uintptr_t returned_to(uintptr_t address) { return address; }

// Of a stub's call whose return address stands at `place`, its integer argument `i`, up
// to 5, as call_stubs.S has pushed it: rdi, rsi, rdx, rcx, r8, r9 below rax.
inline uintptr_t argument_of(const uintptr_t* place, size_t i) {
  return *(place - 2 - i);
}

}  // namespace arctrace::shim::machine
