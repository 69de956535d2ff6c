// Hooks the library calls of code that was not built for tracing: the slots through which
// a module calls functions of others are pointed to stubs (call_stubs.h). Some slots lead
// elsewhere: straight to a function of libarctrace.so, or to one of the shim, if the
// loader has bound them past the shim.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/shim_protocol/options.hpp"
#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

// Hooks the modules that are loaded. To be called once.
void hook_library_calls(LibraryCalls which);

// Hooks the modules as another session needs it, in which functions may have other flags
// and arguments. To be called between the sessions, while no call is recorded.
void renew_library_hooks(LibraryCalls which);

// Hooks modules that were loaded later and are relocated by now.
void hook_new_modules();

// Has module_is_initialized() called in place of the module's initialization function,
// because only when that is called the module is relocated.
void await_initialization(const ModuleImage& image);

// Hooks the modules that awaited their initialization, and calls the function of
// set_module_hook().
void module_is_initialized();

// Sets what is to be called when a module that was awaited is initialized.
void set_module_hook(void (*hook)());

// To be called when the loader's list of modules has changed. If new ones are not yet
// relocated, they will be hooked.
void library_modules_changed(bool are_unrelocated);

// Whether the function is one of libarctrace.so, which is not called through.
bool is_own_function(uintptr_t address);

// Whether the module is the shim, or the library through which it writes.
bool is_own_module(const ModuleImage& image);

// Has calls of the shim's function `name`, at `from`, lead to `to`, a function of
// libarctrace.so, without the shim's in between: in all modules that are hooked from then
// on, whichever calls are recorded. To be called before hook_library_calls(), for at most
// kLedCallsMax functions; further ones are skipped. `name` stays where it is.
inline constexpr size_t kLedCallsMax = 2;
void lead_calls(const char* name, uintptr_t from, uintptr_t to);

// Whether that was requested for a function of this name.
bool are_led(const char* name);

// When the loader has a module's slots relocated.
enum class Relocated : uint8_t { kAtStart, kLater };

// Points the slot of such a function to libarctrace.so; the slot has the function's
// address or is not bound yet. Other slots stay as they are. A slot that is not bound has
// an address of its own module; it is known to be bound to the shim's function only in a
// module that is there when the program starts.
void lead_slot(const ModuleImage& image, const ElfW(Rela) & relocation, uint64_t* slot,
               const char* name, Relocated when);

// The loader binds some slots past the shim's functions, to those of libc: all of them if
// the shim is late, and those of a module that was loaded with RTLD_DEEPBIND, before
// which its own libraries are searched.

// Whether slots of the module are bound so, or will be by their first call. `when`: its
// slots were relocated.
bool is_bound_past_shim(const ModuleImage& image, Relocated when);

// Binds a slot of such a module to the shim's function of the slot's name, if there is
// one: that of jump_slots[index], or of another relocation.
void bind_jump_slot_to_shim(const ModuleImage& image, size_t index);
void bind_data_slot_to_shim(const ModuleImage& image, const ElfW(Rela) & relocation);

}  // namespace arctrace::shim
