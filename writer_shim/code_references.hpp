// Slots that a module's code uses without a PLT entry of their own (-fno-plt, and the
// linker's .plt.got): how it uses them, found by reading the code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "writer_shim/module_slots.hpp"

namespace arctrace::shim {

struct SlotUse {
  uint64_t* slot;
  uint64_t* jump;  // a PLT entry, eight bytes that jump through the slot; null: none
  bool is_called;  // by a call or jump of other code
  bool is_read;    // in another way: the function's address is taken, or it may be
};

// Sets how the code of `image` uses each of the slots, `uses` sorted by slot. A byte
// sequence that only might be a use counts as one.
void find_slot_uses(const ModuleImage& image, SlotUse* uses, size_t count);

}  // namespace arctrace::shim
