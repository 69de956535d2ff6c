// Calls code from a hook that is not ours, and may use the vector registers, where they
// hold the arguments or the return value of the program's function. Hooks rarely need
// such code: it is the loader's.
#pragma once

#include <cstdint>

namespace arctrace::shim {

// Returns function(first, second), and leaves the vector registers as they were, if the
// machine has a way to keep them (x86_64/kept_vectors.cpp).
uintptr_t call_keeping_vectors(uintptr_t (*function)(uintptr_t, uint32_t),
                               uintptr_t first, uint32_t second);

// Calls task() in the same way.
template <class Task>
void keep_vectors_around(Task task) {
  call_keeping_vectors(
      [](uintptr_t address, uint32_t) {
        (*reinterpret_cast<Task*>(address))();
        return uintptr_t{0};
      },
      reinterpret_cast<uintptr_t>(&task), 0);
}

}  // namespace arctrace::shim
