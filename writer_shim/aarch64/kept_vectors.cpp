#include "writer_shim/kept_vectors.hpp"

namespace arctrace::shim {

// Nothing keeps them here yet.
uintptr_t call_keeping_vectors(uintptr_t (*function)(uintptr_t, uint32_t),
                               uintptr_t first, uint32_t second) {
  return function(first, second);
}

}  // namespace arctrace::shim
