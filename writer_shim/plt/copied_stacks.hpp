// Programs that copy a part of a thread's stack away, use its memory for something else,
// and copy it back later: greenlet, and gevent on top of it. There a return address of
// ours may come back when its call is forgotten, or was replaced by another one in the
// same slot. So once such a module is loaded, a call is only called through if nothing of
// the program can run inside it; of others only the entry is recorded.
#pragma once

#include <cstdint>

#include "writer_shim/plt/call_table.hpp"

namespace arctrace::shim {

// Looks at the path of a module that is loaded, before any of its functions runs.
void look_for_stack_copier(const char* path);

// Whether the stack may be copied while a call of `name` runs, which is at `target`.
bool may_copy_stack_inside(const char* name, uintptr_t target);

}  // namespace arctrace::shim
