// Slots that are not bound yet are left alone (docs/decisions.md): a PLT entry names the
// slot to the loader in registers that a stub needs itself.
#include "writer_shim/arch/lazy_binding.hpp"

namespace arctrace::shim {

LazyBinding find_lazy_binding(const ModuleImage& image, size_t index, uint64_t value,
                              bool& is_known) {
  // Bound, unless it leads into the module's own PLT.
  is_known =
      !image.is_of_another(image.jump_slots[index]) || !image.range.contains(value);
  return {};
}

uintptr_t bind_lazily(const LazyBinding& /*binding*/) { __builtin_trap(); }

}  // namespace arctrace::shim
