// The jumps that are written into functions which begin with NOPs for a jump, called a
// sled, or with a call of a hook that a jump may replace. Each machine knows its
// instructions (x86_64/sled_jumps.cpp, aarch64/sled_jumps.cpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "writer_shim/arch/machine.hpp"

namespace arctrace::shim {

// Makes the function at `from`, which must be empty, jump to `target`, also while other
// threads run it. False: the function is not empty, it cannot be changed, or the target
// is too far away.
bool make_function_jump(uintptr_t from, uintptr_t target);

}  // namespace arctrace::shim

/* The stub of exit-hooked functions (src/api/exit_hooked_calls.cpp): their sleds jump to
 * it with the address of their LibraryCall in r11, and it jumps on to the function
 * (x86-64). */
#ifndef ARCTRACE_WRITER_SHIM_EXIT_HOOKED_ENTRY_H
#define ARCTRACE_WRITER_SHIM_EXIT_HOOKED_ENTRY_H

extern "C" __attribute__((visibility("hidden")))
const unsigned char arctrace_exit_hooked_entry[];

#endif /* ARCTRACE_WRITER_SHIM_EXIT_HOOKED_ENTRY_H */
namespace arctrace::shim {

struct Sled {
  uintptr_t function;  // 0: there is none, or it is too small for a jump
  unsigned char* begin;
  uintptr_t end;  // where the function goes on
};

// How a function's exits are seen.
enum class Exits : uint8_t {
  kThrough,    // the stub calls the function through
  kExitHooked  // the function calls arctrace_shim_function_return before it returns
};

// The code to which a sled jumps. It tests the gate itself, so that a function costs next
// to nothing while functions are switched off, and then goes on to the stub.
struct GatedJump {
  alignas(8) unsigned char code[machine::kGatedJumpBytes];
  uint64_t stub;     // or, if kSledsLoadCalls, of the code that goes on with `call`
  uint64_t address;  // of the code
  uint64_t call;     // address of the function's LibraryCall
  uint64_t sled;     // address of the sled that leads here; 0: not known to
  uint32_t written;  // the first bytes that the sled got
};

// The code that sleds at the exits of a module's functions call.
struct ReturnJump {
  alignas(8) unsigned char code[8];
  uint64_t hook;
};

// Writes the code of the jump for a sled; `gate`: the address of the word that holds the
// gate's address. False: something is too far away.
bool make_jump(GatedJump& jump, uintptr_t gate, const Sled& sled);

// The address at which the stub calls the function.
uintptr_t continue_address(const GatedJump& jump, const Sled& sled);

// The kernel puts a breakpoint on the first byte of a function to which a uprobe is
// attached, executes in its place the instruction that the file has there, and later
// writes back the file's byte. So a sled's bytes must also be right without its jump:
// with the file's first byte, and from the end of the file's first instruction on. Where
// that requires a jump over a certain distance, the sled jumps to a landing, which jumps
// on.
//
// Sets the i-th of the distances that are possible for `sled`, from its begin to its
// landing. False: there are no more.
bool find_landing_distance(const Sled& sled, size_t i, intptr_t& distance);
inline constexpr size_t kLandingSize = 8;

// Makes the sled jump to `jump`, by a landing at this distance if it is not 0 and is
// possible for the sled. False: it is too far away.
bool lead_to_jump(const Sled& sled, const GatedJump& jump, intptr_t landing_distance);

// Whether calls are recorded also when a uprobe was there and is gone, by the file's
// first byte. To be asked before the jump is written.
bool outlasts_probes(const Sled& sled);

// The first function makes a jump to `hook`, the second one has the sled at an exit call
// it; false: that is too far away.
void make_return_jump(ReturnJump& jump, uintptr_t hook);
bool lead_to_return_jump(unsigned char* exit, const ReturnJump& jump);

// The stub, or code for patched functions, to which the jump at the beginning of the
// function leads; 0: there is no jump of ours.
uintptr_t stub_of_jump(uintptr_t function);
// Whether there is a jump of ours at the beginning of the function.
inline bool has_jump(uintptr_t function) { return stub_of_jump(function) != 0; }
// Whether that jump leads to the stub of exit-hooked functions.
inline bool is_exit_hooked(uintptr_t function) {
  if constexpr (machine::kHasExitHooks) {
    return stub_of_jump(function) ==
           reinterpret_cast<uintptr_t>(arctrace_exit_hooked_entry);
  } else {
    return false;
  }
}

// To be called after writing code, which is executed from now on.
void finish_code(uintptr_t address, size_t size);

}  // namespace arctrace::shim
