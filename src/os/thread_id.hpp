// The calling thread's id, also where a seccomp filter forbids the system call for it.
#pragma once

#include <cstdint>

namespace arctrace {

// Notes the id of the calling thread, which libc has just begun.
void set_libc_thread_id(uint32_t tid);

// Asks the kernel; where system calls are forbidden (src/os/kernel_use.hpp), returns the
// id that set_libc_thread_id() noted, or 0.
uint32_t thread_id();

}  // namespace arctrace
