// Calls of foreign code from a hook, while the vector registers have the arguments or the
// return value of the program's function; and the loader's binding of a slot, for which
// such a call is made.
#pragma once

#include <cstddef>
#include <cstdint>

#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

// The functions below call foreign code from a hook. Such code may use the vector
// registers while they have the arguments or the return value of the program's function.
// Hooks rarely need such code: it is the loader's.

// Returns function(first, second), and leaves the vector registers as they were, if the
// machine has a way to keep them (x86_64/loader_calls.cpp).
uintptr_t call_keeping_vectors(uintptr_t (*function)(uintptr_t, uint32_t),
                               uintptr_t first, uint32_t second);

// Calls task() and leaves the vector registers as they were, too.
template <class Task>
void keep_vectors_around(Task task) {
  call_keeping_vectors(
      [](uintptr_t address, uint32_t) {
        (*reinterpret_cast<Task*>(address))();
        return uintptr_t{0};
      },
      reinterpret_cast<uintptr_t>(&task), 0);
}

// Has the loader bind a slot that it binds at the first call only. Until then such a slot
// holds the address of an entry of its module's procedure linkage table. That entry calls
// the loader's resolver, which writes the function's address to the slot, so that calls
// of other threads would bypass our stub until the slot is hooked again. So the resolver
// is given a copy of the slot's relocation, which leads it to a word of ours.

// How the loader is asked for a slot's function.
struct LazyBinding {
  // The module's table, whose second word is the loader's own address for the module, and
  // whose third is its resolver. Null: the slot is bound.
  const uint64_t* table = nullptr;
  uint32_t index = 0;  // of the slot's relocation
  // The place in the module for copies of relocations, in words from the table; 0: there
  // is none, and the loader writes to the slot itself.
  uint32_t area_distance = 0;

  bool is_needed() const { return table != nullptr; }
};

// The binding of the slot of jump_slots[index], which holds `value`. `is_known` is set to
// false if the slot is not bound yet, and the code of the table or of the loader has a
// form that is not known here. Uses the end of the module's last page (image.unused).
LazyBinding find_lazy_binding(const ModuleImage& image, size_t index, uint64_t value,
                              bool& is_known);

// Has the loader find the slot's function as the first call through it would, and returns
// the function's address. The slot keeps its value, or gets that address if the module
// has no space for copies, or if other threads use all of it. Ends the process, as the
// first call would, if no library has the function. Changes neither vector registers nor
// errno.
uintptr_t bind_lazily(const LazyBinding& binding);

}  // namespace arctrace::shim
