// The machine frame from which a hook was called, and its callers'.
#pragma once

#include <cstdint>

#include "src/api/shim_interface.h"

namespace arctrace::shim {

// Fills in location and flags of a hook's call from the rest: its canonical frame
// address, or where that can't be known its stack pointer, flagged as guessed.
// `function`: the one that the hook is called for. Some ns; the first time for a place
// some hundred.
void locate_frame(uintptr_t function, arctrace_shim_call& call);

// arctrace_shim_unwinder.
int find_caller(arctrace_shim_call* frame, uintptr_t stack_high);

// Code was loaded or unloaded: what is known of its frames may be wrong.
void forget_frame_rules();

}  // namespace arctrace::shim
