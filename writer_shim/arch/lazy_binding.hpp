// Slots that the loader binds when something is first called through them. Such a slot
// holds the address of an entry of its module's procedure linkage table, which calls the
// loader's resolver; that writes the function's address over whatever the slot holds.
#pragma once

#include <cstddef>
#include <cstdint>

#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

// How the loader is asked for a slot's function.
struct LazyBinding {
  // Of the module: behind the first word, the loader's own address for the module, and
  // its resolver. Null: there is nothing to ask for.
  const uint64_t* table = nullptr;
  uint32_t index = 0;  // of the slot's relocation

  bool is_needed() const { return table != nullptr; }
};

// Of the slot of jump_slots[index], which holds `value`. `is_known` is false if it is not
// yet bound but by code of a kind that is not known here, or of a loader that is not.
LazyBinding find_lazy_binding(const ModuleImage& image, size_t index, uint64_t value,
                              bool& is_known);

// Has the loader bind the slot, as the first call through it would: returns the
// function's address, which the slot then holds. Ends the process, as the first call
// would, if no library has the function. Changes neither vector registers nor errno.
uintptr_t bind_lazily(const LazyBinding& binding);

}  // namespace arctrace::shim
