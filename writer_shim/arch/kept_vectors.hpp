// Calling code that is not ours, and may use the vector registers, from a hook: there
// they hold the arguments or the result of the program's function. What rarely happens in
// hooks needs some (the loader's functions).
#pragma once

#include <cstdint>

namespace arctrace::shim {

// function(first, second), behind which the vector registers are as before, where the
// machine has a way to keep them (x86_64/kept_vectors.cpp).
uintptr_t call_keeping_vectors(uintptr_t (*function)(uintptr_t, uint32_t),
                               uintptr_t first, uint32_t second);

// The same with task().
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
