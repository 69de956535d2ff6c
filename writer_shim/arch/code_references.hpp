// Finds out, by reading a module's code, how it uses the slots that have no PLT entry of
// their own (-fno-plt, and the linker's .plt.got).
#pragma once

#include <cstddef>
#include <cstdint>

#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

struct SlotUse {
  uint64_t* slot;
  uint64_t* jump;  // a PLT entry, eight bytes that jump through the slot; null: none
  bool is_called;  // by a call or jump of other code
  bool is_read;    // in another way: the function's address is taken, or may be
};

// The use of the slot at `address` among `uses`, which are sorted by slot. Null: there is
// none.
inline SlotUse* find_use(SlotUse* uses, size_t count, uintptr_t address) {
  size_t low = 0;
  size_t high = count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const auto slot = reinterpret_cast<uintptr_t>(uses[middle].slot);
    if (slot == address) return &uses[middle];
    if (slot < address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return nullptr;
}

// Sets how the code of `image` uses each of the slots; `uses` are sorted by slot. Bytes
// that only might be a use count as one.
void find_slot_uses(const ModuleImage& image, SlotUse* uses, size_t count);

}  // namespace arctrace::shim
