// Where functions call __fentry__ first of all (-pg -mfentry), found by reading the code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

struct FentryCall {
  uintptr_t function;  // 0: there is no further one
  uintptr_t begin;     // of the call; endbr64 may stand before it
  uintptr_t end;
};

// The slot that the module's calls of __fentry__ go through; 0: it has none.
uintptr_t find_fentry_slot(const ModuleImage& image);

// The first such call at or behind `from`.
FentryCall next_fentry_call(const ModuleImage& image, uintptr_t slot, uintptr_t from);

}  // namespace arctrace::shim
