// See writer_shim/arch/machine.hpp.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>

namespace arctrace::shim::machine {

inline constexpr uint16_t kElfMachine = EM_AARCH64;

// Relocations of slots: of a PLT entry's, and of one that code reads itself.
inline constexpr uint32_t kJumpSlot = R_AARCH64_JUMP_SLOT;
inline constexpr uint32_t kDataSlot = R_AARCH64_GLOB_DAT;

// Linkers give each use a slot of its own.
inline constexpr bool kPltReadsDataSlots = false;

// No hook exchanges a function's return address.
inline constexpr bool kExchangesReturns = false;

// In unwind tables.
inline constexpr uint64_t kStackPointerRegister = 31;
inline constexpr uint64_t kFramePointerRegister = 29;
inline constexpr uint64_t kReturnAddressRegister = 30;

// Where a function's return address stands, if it is saved: behind the frame pointer.
inline constexpr bool kReturnsBesideFramePointer = true;

// The code that a return address on the stack leads to: it may be signed. XPACLRI, a NOP
// where there is no pointer authentication, works on x30.
inline uintptr_t returned_to(uintptr_t address) {
  register uintptr_t link asm("x30") = address;
  asm("hint #7" : "+r"(link));
  return link;
}

// Of a stub's call whose return address stands at `place`, its integer argument `i`, up
// to 7, as call_stubs.S has stored it: x0 at the lower end of a frame of 14 words.
inline uintptr_t argument_of(const uintptr_t* place, size_t i) {
  return *(place - 13 + i);
}

}  // namespace arctrace::shim::machine
