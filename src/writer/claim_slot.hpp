// Lets a thread join the session: it takes private state, an identity, and a writer slot
// with a robust lock.
#pragma once

#include <cstdint>

#include "src/writer/thread_state.hpp"

namespace arctrace {

// Attaches the calling thread and writes its definitions. Null if there is no session, no
// slot or no memory. REQUIRES: the thread is not attached, and the writer call is
// not nested.
ThreadState* attach_thread(uint64_t ticks);

}  // namespace arctrace
