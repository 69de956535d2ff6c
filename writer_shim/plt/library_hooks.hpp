// Hooks the library calls of code that was not built for tracing: the slots through which
// a module calls functions of others are pointed to stubs (call_stubs.h).
#pragma once

#include <cstdint>

#include "src/shim_protocol/options.hpp"
#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

// Hooks the modules that are loaded. To be called once.
void hook_library_calls(LibraryCalls which);

// Hooks the modules as another session wants it, in which functions may have other flags
// and arguments. To be called between the sessions, while no call is recorded.
void renew_library_hooks(LibraryCalls which);

// Hooks modules that were loaded later and are relocated by now.
void hook_new_modules();

// Has module_is_initialized() called in place of the module's initialization function,
// because only when that is called the module is relocated.
void await_initialization(const ModuleImage& image);

// Hooks what awaited it, and calls what set_module_hook() has set.
void module_is_initialized();

// Sets what is to be called when a module that was awaited is initialized.
void set_module_hook(void (*hook)());

// To be called when the loader's list of modules has changed. If new ones are not yet
// relocated, they will be hooked.
void library_modules_changed(bool are_unrelocated);

// Whether it is a function of libarctrace.so, which is not called through.
bool is_own_function(uintptr_t address);

// Whether the module is the shim, or the library that it writes through.
bool is_own_module(const ModuleImage& image);

}  // namespace arctrace::shim
