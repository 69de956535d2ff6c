// The calling thread's id, where a system call for it may be forbidden.
#pragma once

#include <cstdint>

namespace arctrace {

// libc has just begun the calling thread, and told its id.
void set_libc_thread_id(uint32_t tid);

// Without a system call where those are forbidden (src/os/kernel_use.hpp): as libc
// told it; 0 if it did not.
uint32_t thread_id();

}  // namespace arctrace
