// Detects the death of threads without polling or process ids: a futex word is put on its
// thread's robust list. Writer slots and the collector lock use it.
//
// The kernel marks the word with FUTEX_OWNER_DIED when the thread ends for whatever
// reason, exec included, in whatever PID namespace. We link the word into the list
// ourselves (the kernel's robust-futex ABI) instead of using a robust pthread_mutex_t: in
// shared memory glibc would follow pointers and assert on a kind that a hostile process
// may have written, while our code only stores there. A word is never unlinked; it stays
// on the list until the thread ends.
#pragma once

#include <cstdint>

namespace arctrace {

// A lock word and its list node, laid out as in the mutexes of glibc and musl: `prev`,
// then `next`, which is ARCTRACE_ROBUST_NODE_OFFSET bytes after the word.
struct RobustWord {
  uint32_t& lock;
  uint64_t& prev;
  uint64_t& next;
};

// Whether robust_lock() can work in the calling thread at all.
bool has_robust_list();

// Moves this thread's words to the list that libc has registered since, if they are on
// one of our own: glibc before 2.34 registers none before it has loaded its libpthread.
void follow_robust_list();

// Finds the list of the calling thread, which libc has just begun, without a system call
// where those are forbidden (src/os/kernel_use.hpp).
void find_list_of_libc_thread();

// Compare-exchanges the lock word from `expected` (0, or a dead owner's word) to `tid`
// and links it, so that a death at any instruction leaves it marked or unchanged. False:
// the word was not `expected`, or this thread has no robust list of the known layout.
bool robust_lock(RobustWord word, uint32_t expected, uint32_t tid);

}  // namespace arctrace
