// The loader is told by registers that a stub needs which slot it is to bind: what is not
// bound yet is left alone (docs/decisions.md).
#include "writer_shim/arch/lazy_binding.hpp"

namespace arctrace::shim {

LazyBinding find_lazy_binding(const ModuleImage& image, size_t index, uint64_t value,
                              bool& is_known) {
  // Not into the module's own PLT.
  is_known =
      !image.is_of_another(image.jump_slots[index]) || !image.range.contains(value);
  return {};
}

uintptr_t bind_lazily(const LazyBinding& /*binding*/) { __builtin_trap(); }

}  // namespace arctrace::shim
