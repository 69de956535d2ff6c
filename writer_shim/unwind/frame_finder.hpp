// Finds the machine frame from which a hook was called, and from there its callers'; and
// has other unwinders find the callers of frames of ours.
#pragma once

#include <cstdint>

#include "src/api/shim_interface.h"
#include "writer_shim/arch/machine.hpp"

namespace arctrace::shim {

// Sets the CFA and the flags of a hook's call from its other members. If the CFA is not
// known, it is the stack pointer; a flag says so. `function`: the function for which the
// hook is called. Takes some ns, for a new call site some hundred.
void locate_frame(uintptr_t function, arctrace_shim_call& call);

// An arctrace_shim_unwinder.
int find_caller(arctrace_shim_call* frame, uintptr_t stack_high, uintptr_t wanted);

// Finds the frame of the code that a signal interrupted, on a stack that ends at
// `stack_high`. 0: it is not known.
int find_interrupted(const machine::InterruptedCode& code, uintptr_t stack_high,
                     arctrace_shim_call* frame);

// Discards all known rules: code was loaded or unloaded. One thread at a time.
void forget_frame_rules();

// Has `check` called before a rule is looked up for the first time. It may find that
// modules have changed, and then calls forget_frame_rules().
void set_module_check(void (*check)());

// Routines that an unwinder calls for a frame (personality routines) may find data of
// that frame by _Unwind_GetCFA(), which returns the CFA of the next frame further in:
// LuaJIT's do, whose interpreter has a fixed frame. If that frame is one of ours, its CFA
// differs by some bytes from the stack pointer of the routine's frame
// (writer_shim/arch/x86_64/call_stubs.S), which is the value that the routine expects.

// The address of a function to call instead of libgcc's _Unwind_GetCFA, which is at
// `target`: it returns the stack pointer. It is assumed that all callers use the same
// libgcc.
uintptr_t own_frame_address(uintptr_t target);

// libunwind takes a frame's CFA for the stack pointer of its caller. So that it finds the
// callers of our frames, these are two frames for all unwinders of a process that has
// libunwind (writer_shim/arch/x86_64/call_stubs.S).

// Checks the path of a module that is loaded, before any of its functions runs.
void detect_libunwind(const char* path);

// The functions below find the functions that a thread has open, for a program that was
// joined as it ran: no hook has seen them begin.

// The filter's flags (enum arctrace_shim_call_flags) of a function of `size` bytes; 0:
// not known.
using OpenFunctionFlags = uint32_t(uintptr_t function, uint64_t size);

// To be called whenever the process joins a session as it runs, before anything is
// recorded. From then on each of its threads begins with the functions that it has open.
void find_open_functions(OpenFunctionFlags* flags_of);

}  // namespace arctrace::shim
