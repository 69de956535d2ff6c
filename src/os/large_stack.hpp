// Stacks of our own for code that needs more space than a thread's stack has
// (src/calls/stack_switch.hpp). Signals are blocked while it runs, so that the program's
// handlers run on the program's stacks.
#pragma once

#include <cstdint>

namespace arctrace {

// Split stacks (-fsplit-stack) grow in parts: a function requests a part itself.
// Functions that do not, in libraries or before the request, find little space: some 3
// KB, and next to none in a handler, because the kernel has put the processor's state
// there.

// Each slow path needs at most so many bytes.
constexpr uintptr_t kSlowPathStackBytes = 8192;

// Whether the part of the stack that the thread is on may be too small for a slow path.
inline bool stack_is_short() {
#if defined(__x86_64__)
  // A function that requests no part may use the stack below this address. 0: the stack
  // has no parts.
  uintptr_t asks_from;
  asm("movq %%fs:0x70, %0" : "=r"(asks_from));
  if (__builtin_expect(asks_from == 0, 1)) return false;
  return static_cast<intptr_t>(reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) -
                               asks_from) < static_cast<intptr_t>(kSlowPathStackBytes);
#else
  return false;
#endif
}

// Calls run(data) on a stack of ours, or on the present one if none can be had.
void run_on_large_stack(void (*run)(void* data), void* data);

// To be called in a fork child: the stacks that other threads were on are free.
void free_large_stacks();

}  // namespace arctrace
