// Finds out, by reading a module's code, how it uses the slots that have no PLT entry of
// their own (-fno-plt, and the linker's .plt.got).
#pragma once

#include <cstddef>
#include <cstdint>

#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

struct SlotUse {
  uint64_t* slot;
  uint64_t* jump;  // eight bytes, a PLT entry that jumps through the slot; null: none
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

// Words near a module's code through which its PLT entries jump instead of through the
// slot that the loader filled. They are needed where the code also reads the function's
// address from the slot, so that the slot must keep the loader's value.
class PltCells {
 public:
  // Makes the PLT entry `jump` of `image` (code_references.hpp) jump to `target`. False:
  // there is no memory near enough, or the code cannot be changed.
  bool redirect(const ModuleImage& image, uint64_t* jump, uint64_t target);

  // To be called when the module is gone.
  void release();

 private:
  bool map_near(const ModuleImage& image);

  uint64_t* cells_ = nullptr;
  size_t used_ = 0;
};

}  // namespace arctrace::shim
