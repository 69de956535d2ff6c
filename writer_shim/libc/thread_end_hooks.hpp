// Hooks pthread_exit() and thrd_exit(): when they have left a thread's frames is
// recorded.
#pragma once

namespace arctrace::shim {

// Looks up libc's functions: a thread may end itself in a signal handler. To be called
// once.
void prepare_thread_end_hooks();

}  // namespace arctrace::shim
