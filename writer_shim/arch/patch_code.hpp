// The memory with the code to which jumps at the entries of patched functions lead
// (writer_shim/patch/).
#pragma once

#include <cstdint>

#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

// Notes the memory of an image, which stays. False: there are too many. To be called
// under the loader's lock.
bool note_patch_code(AddressRange image);

// Takes some ns for each image.
bool is_patch_code(uintptr_t address);

}  // namespace arctrace::shim
