// Room for slow paths on stacks that have little: those that are split, and signal
// stacks, whose sizes programs choose by what their handlers need, if not by what the
// kernel does.
#pragma once

#include "src/base/split_stack.hpp"
#include "src/os/roomy_stack.hpp"
#include "src/writer/thread_local.hpp"

namespace arctrace {

// Asks the kernel for the signal stack of a thread that has not told it: one that began
// before the process was joined, or that calls the kernel itself. Two system calls, once.
// Nothing is asked in tasks that use another thread's storage, and where no system calls
// may be made.
void ask_for_signal_stack(ThreadLocal& local);

inline bool has_little_room() {
  if (stack_is_short()) return true;
  ThreadLocal& local = thread_local_state;
  if (!__builtin_expect(local.stacks.is_signal_known, 1)) ask_for_signal_stack(local);
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return local.stacks.is_near_end_of_signal_stack(here, kSlowPathRoom);
}

// Calls f(), on a stack that has room for a slow path.
template <class F>
__attribute__((always_inline)) inline void with_room(F f) {
  if (!__builtin_expect(has_little_room(), 0)) return f();
  run_on_roomy_stack([](void* data) { (*static_cast<F*>(data))(); }, &f);
}

}  // namespace arctrace
