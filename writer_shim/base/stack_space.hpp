// Stacks with enough space for the slow paths of hooks (src/calls/slow_path_stack.hpp).
#pragma once

#include <cstdint>

#include "src/api/shim_interface.h"
#include "src/base/shared_atomics.hpp"
#include "src/os/large_stack.hpp"

namespace arctrace::shim {

// Nonzero: threads of the program have signal stacks, or may have had them before the
// shim was loaded.
extern uint32_t have_signal_stacks;

inline void expect_signal_stacks() {
  IpcAtomics::store_relaxed(have_signal_stacks, uint32_t{1});
}

// Calls f() on a stack that has enough space for a slow path.
template <class F>
__attribute__((always_inline)) inline void with_stack_space(F f) {
  const bool may_be_short =
      stack_is_short() || IpcAtomics::load_relaxed(have_signal_stacks) != 0;
  if (!__builtin_expect(may_be_short, 0)) return f();
  arctrace_shim_with_stack_space([](void* data) { (*static_cast<F*>(data))(); }, &f);
}

}  // namespace arctrace::shim
