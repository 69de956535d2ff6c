// All processors can keep q0 to q7.
#include "writer_shim/arch/kept_vectors.hpp"

// vector_registers.S
extern "C" uintptr_t arctrace_keep_vectors(uintptr_t (*function)(uintptr_t, uint32_t),
                                           uintptr_t first, uint32_t second);

namespace arctrace::shim {

uintptr_t call_keeping_vectors(uintptr_t (*function)(uintptr_t, uint32_t),
                               uintptr_t first, uint32_t second) {
  return arctrace_keep_vectors(function, first, second);
}

}  // namespace arctrace::shim
