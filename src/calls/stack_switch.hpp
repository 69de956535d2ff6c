// Notices on which of its stacks a thread runs, and records each change.
//
// A thread's open frames are those of one stack: its own, or a coroutine's that the
// process has made (src/stack/coroutine_stacks.hpp). When the thread goes on on another
// stack, its open frames are saved, and the saved frames of that stack become the open
// ones.
#pragma once

#include <cstdint>

#include "src/hook_abi/shim_types.h"
#include "src/stack/coroutine_stacks.hpp"
#include "src/writer/thread_state.hpp"
#include "src/writer/writer_call.hpp"

namespace arctrace::writer {

// The thread runs, or is about to, in a frame that ends at `address`. Nothing is done in
// nested calls, on the signal stack, and in vfork children. `is_switch`: it goes there by
// a function that switches stacks. Only such a function can enter a stack that is an
// array on the thread's own: otherwise the array may be gone, and its memory the own
// stack's again.
__attribute__((noinline)) void cache_current_stack_slow(Nesting nesting,
                                                        uintptr_t address, uint64_t ticks,
                                                        bool is_switch);
inline void cache_current_stack(Nesting nesting, uintptr_t address, uint64_t ticks) {
  if (has_coroutine_stacks()) cache_current_stack_slow(nesting, address, ticks, false);
}

// As cache_current_stack_slow(), as a writer call of its own, for a thread that is about
// to go on at this stack pointer.
void record_stack_switch(uintptr_t stack_pointer, bool is_switch);

// To be called before and after a vfork child runs on its parent's stack and with its
// thread state.
void record_vfork_begin();
void record_vfork_end(uint32_t child_pid);

}  // namespace arctrace::writer
