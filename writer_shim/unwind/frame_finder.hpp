// Finds the machine frame from which a hook was called, and from there its callers'.
#pragma once

#include <cstdint>

#include "src/api/shim_interface.h"
#include "writer_shim/arch/machine.hpp"

namespace arctrace::shim {

// Sets the location and the flags of a hook's call from its other members. The location
// is the canonical frame address, or where that is not known the stack pointer, which a
// flag says. `function`: the function for which the hook is called. Takes some ns, for a
// new call site some hundred.
void locate_frame(uintptr_t function, arctrace_shim_call& call);

// An arctrace_shim_unwinder.
int find_caller(arctrace_shim_call* frame, uintptr_t stack_high, uintptr_t wanted);

// The frame of the code that a signal interrupted, on a stack that ends at `stack_high`.
// 0: it is not known.
int find_interrupted(const machine::InterruptedCode& code, uintptr_t stack_high,
                     arctrace_shim_call* frame);

// Discards all known rules: code was loaded or unloaded. One thread at a time.
void forget_frame_rules();

// Has `check` called before a rule is looked up for the first time. It may find that
// modules have changed, and then calls forget_frame_rules().
void set_module_check(void (*check)());

}  // namespace arctrace::shim
