// Functions of the shim whose calls lead elsewhere: straight to a function of
// libarctrace.so, without the shim's in between.
#pragma once

#include <cstddef>
#include <cstdint>

#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

// Has calls of the shim's function `name`, at `from`, lead to `to`: in all modules that
// are hooked from then on, whichever calls are recorded. To be called before
// hook_library_calls(), for at most kLedCallsMax functions; further ones are left alone.
// `name` stays where it is.
inline constexpr size_t kLedCallsMax = 2;
void lead_calls(const char* name, uintptr_t from, uintptr_t to);

// Whether that was asked of a function of this name.
bool are_led(const char* name);

// When the loader has a module's slots relocated.
enum class Relocated : uint8_t { kAtStart, kLater };

// Leads the slot of such a function, which holds the function or is not bound yet. Other
// slots stay as they are. A slot that is not bound holds an address of its own module; it
// is known to be bound to the shim's function only in a module that is there when the
// program starts.
void lead_slot(const ModuleImage& image, const ElfW(Rela) & relocation, uint64_t* slot,
               const char* name, Relocated when);

}  // namespace arctrace::shim
