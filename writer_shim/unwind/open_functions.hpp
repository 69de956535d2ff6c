// Finds the functions that a thread has open, for a program that was joined as it ran:
// no hook has seen them begin.
#pragma once

#include <cstdint>

#include "src/api/shim_interface.h"

namespace arctrace::shim {

// The filter's flags (enum arctrace_shim_call_flags) of a function of `size` bytes; 0:
// not known.
using OpenFunctionFlags = uint32_t(uintptr_t function, uint64_t size);

// To be called whenever the process joins a session as it runs, before anything is
// recorded. From then on each of its threads begins with the functions that it has open.
void find_open_functions(OpenFunctionFlags* flags_of);

}  // namespace arctrace::shim
