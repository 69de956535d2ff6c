// Room for slow paths on stacks that have little: those that are split, and signal
// stacks, whose sizes programs choose by what their handlers need, if not by what the
// kernel does.
#pragma once

#include "src/base/split_stack.hpp"
#include "src/os/roomy_stack.hpp"
#include "src/writer/thread_state.hpp"

namespace arctrace {

inline bool has_little_room() {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return stack_is_short() ||
         thread_local_state.stacks.is_near_end_of_signal_stack(here, kSlowPathRoom);
}

// Calls f(), on a stack that has room for a slow path.
template <class F>
__attribute__((always_inline)) inline void with_room(F f) {
  if (!__builtin_expect(has_little_room(), 0)) return f();
  run_on_roomy_stack([](void* data) { (*static_cast<F*>(data))(); }, &f);
}

}  // namespace arctrace
