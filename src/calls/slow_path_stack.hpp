// Finds stacks for slow paths where the present one is too small.
#pragma once

#include <cstdint>

#include "src/os/large_stack.hpp"
#include "src/writer/thread_state.hpp"

namespace arctrace::writer {

// Asks the kernel for the signal stack of a thread whose hooks have not seen it: one that
// began before the process was joined, or that makes the system call itself. Makes two
// system calls, once. Nothing is asked in tasks that use another thread's thread-local
// storage, and where no system calls may be made.
void ask_for_signal_stack(ThreadLocal& local);

inline bool has_little_stack_space() {
  if (stack_is_short()) return true;
  ThreadLocal& local = thread_local_state;
  if (!__builtin_expect(local.stacks.is_signal_known, 1)) ask_for_signal_stack(local);
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return local.stacks.is_near_end_of_signal_stack(here, kSlowPathStackBytes);
}

// Calls f() on a stack that has enough space for a slow path. Split stacks have little
// space, and so have signal stacks: programs choose their sizes by what their handlers
// need, if not by what the kernel does.
template <class F>
__attribute__((always_inline)) inline void with_stack_space(F f) {
  if (!__builtin_expect(has_little_stack_space(), 0)) return f();
  run_on_large_stack([](void* data) { (*static_cast<F*>(data))(); }, &f);
}

}  // namespace arctrace::writer
