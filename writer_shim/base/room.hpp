// Room for slow paths on stacks that have little (src/base/split_stack.hpp).
#pragma once

#include "src/api/shim_interface.h"
#include "src/base/split_stack.hpp"

namespace arctrace::shim {

// Calls f(), on a stack that has room for a slow path.
template <class F>
__attribute__((always_inline)) inline void with_room(F f) {
  if (!__builtin_expect(stack_is_short(), 0)) return f();
  arctrace_shim_with_room([](void* data) { (*static_cast<F*>(data))(); }, &f);
}

}  // namespace arctrace::shim
