// Has the loader bind a slot that it binds at the first call only. Until then such a slot
// holds the address of an entry of its module's procedure linkage table. That calls the
// loader's resolver, which writes the function's address over whatever the slot holds, so
// that calls of other threads would pass our stub from then until the slot is hooked
// again. So the resolver is given a copy of the slot's relocation, which leads it to a
// word of ours.
#pragma once

#include <cstddef>
#include <cstdint>

#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

// How to ask the loader for a slot's function.
struct LazyBinding {
  // The module's table, whose second word is the loader's own address for the module, and
  // whose third is its resolver. Null: the slot is bound.
  const uint64_t* table = nullptr;
  uint32_t index = 0;  // of the slot's relocation
  // Where the module has room for copies of relocations, in words from the table; 0: it
  // has none, and the loader writes to the slot itself.
  uint32_t room_distance = 0;

  bool is_needed() const { return table != nullptr; }
};

// The binding of the slot of jump_slots[index], which holds `value`. `is_known` is set to
// false if the slot is not bound yet, and the code of the table or of the loader has a
// form that is not known here. Uses the end of the module's last page (image.unused).
LazyBinding find_lazy_binding(const ModuleImage& image, size_t index, uint64_t value,
                              bool& is_known);

// Has the loader find the slot's function as the first call through it would, and returns
// the function's address. The slot holds what it held, or that address if the module has
// no room, or if all of it is in use by other threads. Ends the process, as the first
// call would, if no library has the function. Changes neither vector registers nor errno.
uintptr_t bind_lazily(const LazyBinding& binding);

}  // namespace arctrace::shim
