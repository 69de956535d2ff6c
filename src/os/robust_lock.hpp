// Liveness without system calls or pid games: a futex word on its thread's robust list.
//
// The kernel marks the word with FUTEX_OWNER_DIED when the thread ends for whatever
// reason, exec included, in whatever PID namespace. We link the word into the list
// ourselves (the kernel's robust-futex ABI) instead of using a robust pthread_mutex_t:
// in shared memory, glibc would follow pointers and assert on a kind that a hostile
// process may have written. Our code only ever stores there. A word is never unlinked:
// it lives until the thread does.
#pragma once

#include <cstdint>

namespace arctrace {

// Where the word's list node must stand, as glibc's and musl's mutexes have it:
// `prev`, then `next` ARCTRACE_ROBUST_NODE_OFFSET bytes behind the word.
struct RobustWord {
  uint32_t& lock;
  uint64_t& prev;
  uint64_t& next;
};

// Whether robust_lock() can work in the calling thread at all.
bool has_robust_list();

// libc has just begun the calling thread, and registered its list: where system calls are
// forbidden (src/os/kernel_use.hpp), that is known without one.
void find_list_of_libc_thread();

// Compare-exchanges lock from `expected` (0, or a dead owner's word) to `tid` and links
// it, so that a death at any instruction leaves it marked or untouched. False: it was
// not `expected`, or this thread has no robust list of the known layout.
bool robust_lock(RobustWord word, uint32_t expected, uint32_t tid);

}  // namespace arctrace
