// Notices on which of its stacks a thread runs, and records each change.
//
// A thread's open frames are those of one stack: its own, or a coroutine's that the
// process has made (src/stack/made_stacks.hpp). When the thread goes on on another one,
// they are parked, and those of that stack are the open ones.
#pragma once

#include <cstdint>

#include "src/stack/made_stacks.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace {

// The thread runs, or is about to, in a frame that ends at `address`. Nothing is done in
// nested calls, on the signal stack, and in vfork children. `is_switch`: it goes there by
// a function that switches stacks. Only so a stack is entered that is a part of the
// thread's own: the array may be gone, and its memory the own stack's again.
__attribute__((noinline)) void follow_stack_slow(Nesting nesting, uintptr_t address,
                                                 uint64_t ticks, bool is_switch);
inline void follow_stack(Nesting nesting, uintptr_t address, uint64_t ticks) {
  if (has_made_stacks()) follow_stack_slow(nesting, address, ticks, false);
}

// The same as a call of its own, for a thread that is about to go on at this stack
// pointer.
void record_stack_switch(uintptr_t stack_pointer, bool is_switch);

}  // namespace arctrace
