// A task that was made by clone(CLONE_VM) without thread-local storage of its own uses
// that of the thread that made it, at the same time. Nothing is recorded of such a
// borrower; its records count as lost. While a thread's storage is lent, the thread's
// guard is never 0, so that all calls take the slow path, where the two are told apart by
// the thread id. The thread keeps its guard in another variable meanwhile.
//
// The shim announces a borrower that libc's clone() makes. Others are noticed on the slow
// path, by a stack pointer outside of the thread's own stack.
#pragma once

#include <cstdint>

#include "src/writer/thread_local.hpp"

namespace arctrace {

// To be called by a thread before it makes a task that will use its storage. Does nothing
// where no system call may be made: there a borrower is taken for a coroutine.
void lend_storage();

inline bool storage_is_lent() { return thread_local_state.owner != 0; }

// Whether the calling task is a borrower. REQUIRES: storage_is_lent(). In a child that
// was forked since, the storage is the child's own again: false.
bool is_borrower();

// Looks whether a task with this stack pointer is a borrower that nobody announced. Asks
// for the thread id if the stack pointer is far from where that was last done.
bool look_for_borrower(uintptr_t stack_pointer);

}  // namespace arctrace
