// Finds the open frames of a thread that cannot be open any more although no exit was
// reported: they were left by a jump or an exception, or lie on a stack that the thread
// has left.
#pragma once

#include <cstdint>

#include "src/hook_abi/shim_types.h"
#include "src/stack/machine_frame.hpp"
#include "src/stack/open_frames.hpp"

namespace arctrace {

// The depth without the frames that lie below `now` on the stack, and without those that
// were entered inside them.
uint32_t depth_above(const ThreadStacks& stacks, const OpenFrames& open,
                     const MachineFrame& now);

// The depth that is left when `key` is entered at `now` by `call`, whose stack_pointer is
// 0 if it is not known.
uint32_t depth_at_entry(const ThreadStacks& stacks, const OpenFrames& open, uint64_t key,
                        const MachineFrame& now, const arctrace_shim_call& call);

// Sets how the frames between a call and the innermost open frame are found. Without an
// unwinder (null) they are not looked for.
void set_unwinder(arctrace_shim_unwinder* unwinder);

}  // namespace arctrace
