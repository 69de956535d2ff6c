// Decides whether a thread writes into exclusive blocks or into the session's shared
// chain. In the adaptive scope it has blocks of its own while it writes much: so a crowd
// of threads that write little takes few blocks, and a busy thread contends with none.
#pragma once

#include <cstdint>

#include "src/writer/thread_state.hpp"

namespace arctrace {

// Whether the record that is about to be written, with `body_size` bytes after its head
// and stamped `ticks`, is to stand in an exclusive block. Sets `ticks` to what keeps the
// thread's records in order. Only for the outermost writer call.
bool writes_own_blocks(ThreadState& state, uint32_t body_size, uint64_t& ticks);

}  // namespace arctrace
