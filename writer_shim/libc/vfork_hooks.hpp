// Hooks vfork, whose child borrows its parent's memory, stack and thread state.
#pragma once

namespace arctrace::shim {

// Whether the calling thread is a vfork child, whose records are its parent's.
bool in_vfork_child();

// Around another call that makes a vfork child; `pid` is its id, or -1 if it was not
// made.
void begin_vfork();
void end_vfork(long pid);

}  // namespace arctrace::shim
