// Reads the vector registers as the program has left them. The writer's own code does not
// change them, because it is compiled for general registers only.
#pragma once

#include <cstdint>

#include "src/hook_abi/shim_types.h"

namespace arctrace {

// Stores the low halves of those that arguments are passed in, of which the first also
// has a result. It changes none. Not inlined, so that tests see that nobody else does it.
__attribute__((noinline)) void store_vectors(
    uint64_t (&vectors)[ARCTRACE_SHIM_VECTORS_MAX]);

}  // namespace arctrace
