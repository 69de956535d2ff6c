// Library calls of code that was not built for tracing: the slots through which a module
// calls functions of others are pointed to stubs (call_stubs.h).
#pragma once

#include <cstdint>

#include "src/shim_protocol/options.hpp"

namespace arctrace::shim {

// Hooks the modules that are there. Not where the machine has no stubs.
void hook_library_calls(LibraryCalls which);

// Hooks those that came later, and are relocated.
void hook_new_modules();

// The loader's list of modules has changed; new ones are not yet relocated.
void library_modules_changed();

// Whether it is libarctrace.so's, which is not called through.
bool is_own_function(uintptr_t address);

}  // namespace arctrace::shim
