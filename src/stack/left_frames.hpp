// Which of a thread's open frames can't be open any more, though nobody said that they
// were left: by a jump, an exception, or a thread's other stack.
#pragma once

#include <cstdint>

#include "src/hook_abi/shim_types.h"
#include "src/stack/frame_place.hpp"
#include "src/writer/thread_state.hpp"

namespace arctrace {

// The depth without the frames that lie below `now` on the stack, and what was entered
// inside them.
uint32_t depth_above(const ThreadStacks& stacks, const ThreadState& state,
                     const FramePlace& now);

// The depth that is left when `key` is entered at `place` by `call`, whose stack_pointer
// is 0 if it is not known.
uint32_t depth_at_entry(const ThreadStacks& stacks, const ThreadState& state,
                        uint64_t key, const FramePlace& place,
                        const arctrace_shim_call& call);

// How the frames between a call and the innermost open frame are found; null: they
// aren't.
void set_unwinder(arctrace_shim_unwinder* unwinder);

}  // namespace arctrace
