// The binding of slots on aarch64, and calls that keep vector registers: all processors
// can keep q0 to q7.
#include "writer_shim/arch/loader_calls.hpp"

// Defined in vector_registers.S.
extern "C" uintptr_t arctrace_keep_vectors(uintptr_t (*function)(uintptr_t, uint32_t),
                                           uintptr_t first, uint32_t second);

namespace arctrace::shim {

uintptr_t call_keeping_vectors(uintptr_t (*function)(uintptr_t, uint32_t),
                               uintptr_t first, uint32_t second) {
  return arctrace_keep_vectors(function, first, second);
}

// Slots that are not bound yet are skipped (docs/decisions.md): a PLT entry names the
// slot to the loader in registers that a stub needs itself.

LazyBinding find_lazy_binding(const ModuleImage& image, size_t index, uint64_t value,
                              bool& is_known) {
  // The slot is bound, unless it leads into the module's own PLT.
  is_known =
      !image.is_of_another(image.jump_slots[index]) || !image.range.contains(value);
  return {};
}

uintptr_t bind_lazily(const LazyBinding& /*binding*/) { __builtin_trap(); }

}  // namespace arctrace::shim
