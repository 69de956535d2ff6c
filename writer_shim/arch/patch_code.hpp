// The memory with the code to which jumps at the entries of patched functions lead
// (writer_shim/patch/).
#pragma once

#include <cstdint>

#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

// Set once, before the program's code runs.
extern AddressRange patch_code;

inline bool is_patch_code(uintptr_t address) { return patch_code.contains(address); }

}  // namespace arctrace::shim
