// Hooks the creation of threads, their names and their signal stacks: a thread takes its
// slot in the session when it starts, rather than in its first hook.
#pragma once

#include <pthread.h>

#include <cstdint>

namespace arctrace::shim {

// Looks up libc's functions, and maps memory for threads to come. To be called once.
void prepare_thread_hooks();

// The id of a living thread; 0: not known.
uint32_t thread_id(pthread_t thread);

}  // namespace arctrace::shim
