// The memory that is mapped for the jumps and landings of each patched module.
#pragma once

#include <cstddef>
#include <cstdint>

#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

// `code`: an address in the module to which the memory belongs.
void note_jump_memory(uintptr_t code, uintptr_t low, size_t size);

// Unmaps it. To be called when the module is unloaded.
void release_jump_memory(const AddressRange& module);

// Whether `address` is in such memory. Looks at all of it.
bool is_jump_memory(uintptr_t address);

}  // namespace arctrace::shim
