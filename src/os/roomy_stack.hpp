// Stacks of our own for what needs more room than a thread's stack has
// (src/base/split_stack.hpp). Signals are blocked meanwhile, so that the program's
// handlers run on its own stacks.
#pragma once

#include "src/base/split_stack.hpp"

namespace arctrace {

// Calls run(data) on a stack of ours, or on the present one if none can be had.
void run_on_roomy_stack(void (*run)(void* data), void* data);

// In a fork child: the stacks that other threads were on are free.
void free_roomy_stacks();

// Calls f(), on a stack that has room for a slow path.
template <class F>
__attribute__((always_inline)) inline void with_room(F f) {
  if (!__builtin_expect(stack_is_short(), 0)) return f();
  run_on_roomy_stack([](void* data) { (*static_cast<F*>(data))(); }, &f);
}

}  // namespace arctrace
