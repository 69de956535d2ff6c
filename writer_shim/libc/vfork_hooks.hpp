// Hooks vfork, whose child borrows its parent's memory, stack and thread state.
#pragma once

namespace arctrace::shim {

// Whether the calling thread is a vfork child, whose records are its parent's.
bool in_vfork_child();

}  // namespace arctrace::shim
