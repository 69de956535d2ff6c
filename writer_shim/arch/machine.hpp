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

// The types of the relocations of slots: of those that PLT entries use, and those that
// code reads.
inline constexpr uint32_t kJumpSlot = R_X86_64_JUMP_SLOT;
inline constexpr uint32_t kDataSlot = R_X86_64_GLOB_DAT;

// A PLT entry may jump through the slot from which code reads a function's address.
inline constexpr bool kPltReadsDataSlots = true;

// Hooks at the entry of functions make them return to arctrace_exchanged_returns.
inline constexpr bool kExchangesReturns = true;

// Functions may be exit-hooked, which needs no changed return address.
inline constexpr bool kHasExitHooks = true;

// Whether libarctrace has hooks of -finstrument-functions that programs can call
// straight.
inline constexpr bool kHasStraightHooks = true;

// Unwinders can be shown two frames of ours for a call, arctrace_second_frame's too.
inline constexpr bool kHasSecondFrame = true;

// Functions without a NOP area for a hook can be patched (writer_shim/patch/).
inline constexpr bool kPatchesFunctions = true;

// A jump reaches 2 GiB, which has to include the module.
inline constexpr uintptr_t kJumpReach = uintptr_t{1} << 29;

inline constexpr size_t kGatedJumpBytes = 48;

// The code to which sleds jump loads the address of the function's entry, as its stub
// does.
inline constexpr bool kSledsLoadCalls = true;

// The numbers of registers in unwind tables.
inline constexpr uint64_t kStackPointerRegister = 7;
inline constexpr uint64_t kFramePointerRegister = 6;
inline constexpr uint64_t kReturnAddressRegister = 16;

// A function's return address is 8 bytes below its CFA.
inline constexpr bool kReturnsBesideFramePointer = false;

// The stack pointers of callers are multiples of this; the CFAs of our frames are less
// than this above one.
inline constexpr uintptr_t kStackAlignment = 8;

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

// The code that a signal interrupted.
struct InterruptedCode {
  uintptr_t program_counter;
  uintptr_t stack_pointer;
  uintptr_t frame_pointer;
};

// Reads the kernel's frame of a handler that returns to `return_address`, and whose own
// frame ends at `cfa`, on a stack that ends at `stack_high`. False: `return_address`
// is none of the kernel's. REQUIRES: the code there may be read.
inline bool read_interrupted(uintptr_t return_address, uintptr_t cfa,
                             uintptr_t stack_high, InterruptedCode& code) {
  // mov $15, %rax; syscall: rt_sigreturn.
  constexpr char kSignalReturn[] = "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05";
  if (return_address == 0 || cfa > stack_high || stack_high - cfa < sizeof(ucontext_t) ||
      cfa % sizeof(uintptr_t) != 0 ||
      __builtin_memcmp(reinterpret_cast<const void*>(return_address), kSignalReturn,
                       sizeof kSignalReturn - 1) != 0) {
    return false;
  }
  const auto& registers = reinterpret_cast<const ucontext_t*>(cfa)->uc_mcontext.gregs;
  code = {static_cast<uintptr_t>(registers[REG_RIP]),
          static_cast<uintptr_t>(registers[REG_RSP]),
          static_cast<uintptr_t>(registers[REG_RBP])};
  return true;
}

// The function that the instruction before `return_address` calls, whatever registers and
// memory hold; 0: it has no fixed target. REQUIRES: the five bytes may be read.
inline uintptr_t called_by_name(uintptr_t return_address) {
  constexpr unsigned char kCall = 0xe8;
  constexpr uintptr_t kCallBytes = 5;
  const auto* bytes = reinterpret_cast<const unsigned char*>(return_address - kCallBytes);
  if (*bytes != kCall) return 0;
  int32_t distance;
  __builtin_memcpy(&distance, bytes + 1, sizeof distance);
  return return_address + static_cast<uintptr_t>(intptr_t{distance});
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

inline constexpr bool kHasExitHooks = false;

// Running programs are not joined on this machine.
struct InterruptedCode {
  uintptr_t program_counter;
  uintptr_t stack_pointer;
  uintptr_t frame_pointer;
};
inline bool read_interrupted(uintptr_t /*return_address*/, uintptr_t /*location*/,
                             uintptr_t /*stack_high*/, InterruptedCode& /*code*/) {
  return false;
}
inline uintptr_t called_by_name(uintptr_t /*return_address*/) { return 0; }

inline constexpr bool kHasStraightHooks = false;

inline constexpr bool kHasSecondFrame = false;

inline constexpr bool kPatchesFunctions = false;

// A branch reaches 128 MiB.
inline constexpr uintptr_t kJumpReach = uintptr_t{1} << 27;

inline constexpr size_t kGatedJumpBytes = 24;

inline constexpr bool kSledsLoadCalls = false;

inline constexpr uint64_t kStackPointerRegister = 31;
inline constexpr uint64_t kFramePointerRegister = 29;
inline constexpr uint64_t kReturnAddressRegister = 30;

// A function's return address, if it is saved, is the word after the frame pointer.
inline constexpr bool kReturnsBesideFramePointer = true;

inline constexpr uintptr_t kStackAlignment = 16;

// The address may be signed. XPACLRI, a NOP where there is no pointer authentication,
// works on x30.
inline uintptr_t returned_to(uintptr_t address) {
  register uintptr_t link asm("x30") = address;
  asm("hint #7" : "+r"(link));
  return link;
}

// The stack pointer is not known: the loader keeps the number secret with which it is
// mangled.
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
