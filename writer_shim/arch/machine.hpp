// The numbers and layouts in which the machines differ. The code of each machine is in
// x86_64/ and aarch64/.
#pragma once

#include <elf.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>

#include "src/hook_abi/shim_types.h"

namespace arctrace::shim::machine {

#if defined(__x86_64__)

// The relocations of slots: of those that PLT entries use, and those that code reads.
inline constexpr uint32_t kJumpSlot = R_X86_64_JUMP_SLOT;
inline constexpr uint32_t kDataSlot = R_X86_64_GLOB_DAT;

// A PLT entry may jump through the slot that code reads a function's address from.
inline constexpr bool kPltReadsDataSlots = true;

// Hooks at the entry of functions make them return to arctrace_exchanged_returns.
inline constexpr bool kExchangesReturns = true;

// Functions may report their exits by a hook, which needs no changed return address.
inline constexpr bool kHasReportedExits = true;

// Unwinders can be shown two frames of ours for a call, arctrace_second_frame's too.
inline constexpr bool kHasSecondFrame = true;

// Functions that have no room for a hook can be patched (writer_shim/patch/).
inline constexpr bool kPatchesFunctions = true;

// A jump reaches 2 GiB, which has to include the module.
inline constexpr uintptr_t kJumpReach = uintptr_t{1} << 29;

inline constexpr size_t kGatedJumpBytes = 48;

// Registers as unwind tables number them.
inline constexpr uint64_t kStackPointerRegister = 7;
inline constexpr uint64_t kFramePointerRegister = 6;
inline constexpr uint64_t kReturnAddressRegister = 16;

// A function's return address is 8 bytes below its canonical frame address.
inline constexpr bool kReturnsBesideFramePointer = false;

// The code that a return address on the stack leads to.
inline uintptr_t returned_to(uintptr_t address) { return address; }

// Stubs try the writer's fast path before they call the shim.
inline constexpr bool kStubsTryFastPath = true;

// The stack pointer to which longjmp(buffer) returns: glibc keeps it mangled.
inline uintptr_t jump_stack_pointer(const uintptr_t* buffer) {
  constexpr size_t kStackPointer = 6;
  constexpr unsigned kRotated = 17;
  uintptr_t guard;
  asm("mov %%fs:0x30, %0" : "=r"(guard));
  const uintptr_t mangled = buffer[kStackPointer];
  return (mangled >> kRotated | mangled << (64 - kRotated)) ^ guard;
}

// The stack pointer with which a context goes on.
inline uintptr_t context_stack_pointer(const ucontext_t& context) {
  return static_cast<uintptr_t>(context.uc_mcontext.gregs[REG_RSP]);
}

#elif defined(__aarch64__)

inline constexpr uint32_t kJumpSlot = R_AARCH64_JUMP_SLOT;
inline constexpr uint32_t kDataSlot = R_AARCH64_GLOB_DAT;

// Linkers give each use a slot of its own.
inline constexpr bool kPltReadsDataSlots = false;

// No hook exchanges a function's return address.
inline constexpr bool kExchangesReturns = false;

inline constexpr bool kHasReportedExits = false;

inline constexpr bool kHasSecondFrame = false;

inline constexpr bool kPatchesFunctions = false;

// A branch reaches 128 MiB.
inline constexpr uintptr_t kJumpReach = uintptr_t{1} << 27;

inline constexpr size_t kGatedJumpBytes = 24;

inline constexpr uint64_t kStackPointerRegister = 31;
inline constexpr uint64_t kFramePointerRegister = 29;
inline constexpr uint64_t kReturnAddressRegister = 30;

// A function's return address, if it is saved, is the word after the frame pointer.
inline constexpr bool kReturnsBesideFramePointer = true;

// The address may be signed. XPACLRI, a NOP where there is no pointer authentication,
// works on x30.
inline uintptr_t returned_to(uintptr_t address) {
  register uintptr_t link asm("x30") = address;
  asm("hint #7" : "+r"(link));
  return link;
}

// Not known: the loader keeps to itself by what it is mangled.
inline uintptr_t jump_stack_pointer(const uintptr_t* /*buffer*/) { return 0; }

inline uintptr_t context_stack_pointer(const ucontext_t& context) {
  return context.uc_mcontext.sp;
}

inline constexpr bool kStubsTryFastPath = false;

#endif

// Integer argument `i`, up to 5, of a stub's call whose return address is at
// `return_slot`, as call_stubs.S has stored it.
inline uintptr_t argument_of(const uintptr_t* return_slot, size_t i) {
  return return_slot[ARCTRACE_SHIM_STUB_ARGUMENT(static_cast<ptrdiff_t>(i))];
}

}  // namespace arctrace::shim::machine
