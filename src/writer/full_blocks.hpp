// What is done with a full block of a thread's own while the buffer fills up: the shim
// looks which functions filled it, and switches some of them off.
#pragma once

#include "src/hook_abi/shim_types.h"
#include "src/writer/thread_state.hpp"

namespace arctrace {

// To be called once, before threads write.
void set_full_block_hook(arctrace_shim_full_block* hook);

// To be called with the thread's open block before it is closed because it is full. Does
// nothing unless the recorder is behind: half of the buffer waits for it.
void look_at_full_block(const ThreadState& state, uint64_t ticks);

}  // namespace arctrace
