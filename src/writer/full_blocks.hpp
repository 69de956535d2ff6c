// What is done with a full block of a thread's own while the buffer fills up: the shim
// looks which functions filled it, and switches some of them off.
#pragma once

#include "src/hook_abi/shim_types.h"
#include "src/process/process_identity.hpp"
#include "src/writer/thread_state.hpp"

namespace arctrace {

// To be called once, before the process has other threads.
void set_full_block_hook(arctrace_shim_full_block* hook);

// To be called with the thread's open block before it is closed because it is full. Does
// nothing unless the recorder is behind, with half of the buffer's blocks in use, or
// while another thread of the process looks at its block.
void look_at_full_block(const ThreadState& state, const ProcessState& process,
                        uint64_t ticks);

}  // namespace arctrace
