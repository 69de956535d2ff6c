// Slots that the loader has bound past the shim's functions, to those of libc: all of
// them if the shim is late, and those of a module that was loaded with RTLD_DEEPBIND,
// before which its own libraries are searched.
#pragma once

#include <cstddef>

#include "writer_shim/elf/module_slots.hpp"
#include "writer_shim/plt/led_calls.hpp"

namespace arctrace::shim {

// Whether slots of the module are bound so, or will be by their first call. `when`: its
// slots were relocated.
bool is_bound_past_shim(const ModuleImage& image, Relocated when);

// Binds a slot of such a module to the shim's function of the slot's name, if there is
// one: that of jump_slots[index], or of another relocation.
void bind_jump_slot_to_shim(const ModuleImage& image, size_t index);
void bind_data_slot_to_shim(const ModuleImage& image, const ElfW(Rela) & relocation);

}  // namespace arctrace::shim
