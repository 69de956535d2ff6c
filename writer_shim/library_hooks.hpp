// Library calls of code that was not built for tracing: the slots through which a module
// calls functions of others are pointed to stubs (call_stubs.h).
#pragma once

#include <cstdint>

#include "writer_shim/function_choice.hpp"
#include "writer_shim/shim_options.hpp"

namespace arctrace::shim {

// Hooks the modules that are there. Not where the machine has no stubs.
void hook_library_calls(LibraryCalls which);

// The address of a stub that calls `target` as the function `function`, where `target` is
// behind the jump that leads to the stub. 0: there is none left.
uintptr_t stub_for_function(const KnownFunction& function, uintptr_t target);

// Whether a function that returns to `address` was called through a stub.
bool returns_to_stub(uintptr_t address);

// The loader's list of modules has changed; new ones are not yet relocated.
void library_modules_changed();

// No system call and no memory may be needed from now on.
void name_all_library_calls();

}  // namespace arctrace::shim
