// Tests whether hooks that are compiled into functions have anything to record. This is
// the first step of each of them, so it is inlined.
#pragma once

#include <cstdint>

#include "src/api/shim_interface.h"
#include "writer_shim/base/early_join.hpp"
#include "writer_shim/base/stack_space.hpp"

// The gate is weak, so that the hooks can check whether the loader has bound it yet:
// resolvers of a library's indirect functions run, and call our hooks, before the shim is
// relocated.
#pragma weak arctrace_gate

namespace arctrace::shim {

inline bool functions_gate_is_open() {
  if (__builtin_expect(&arctrace_gate == nullptr, 0)) return false;
  if (__builtin_expect((*arctrace_gate & ARCTRACE_GATE_FUNCTIONS) != 0, 1)) return true;
  join_early();
  return (*arctrace_gate & ARCTRACE_GATE_FUNCTIONS) != 0;
}

}  // namespace arctrace::shim
