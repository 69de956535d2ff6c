// vfork: a child that borrows its parent's memory, stack and thread state.
#pragma once

namespace arctrace::shim {

// Whether the calling thread is a vfork child: what it writes and notes is its parent's.
bool in_vfork_child();

}  // namespace arctrace::shim
