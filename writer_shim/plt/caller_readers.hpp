// Finds the functions that the shim does not call through, although their names do not
// show that: those that examine their caller, those of sanitizers, those that have hooks
// of their own, and all in which a program may copy its stack.
#pragma once

#include <cstdint>

#include "writer_shim/plt/call_table.hpp"

namespace arctrace::shim {

// Whether the function reads or replaces its own return address, which a stub has
// exchanged, or saves the registers of its caller in order to return to it once more, as
// far as its first few hundred instructions show. The arguments that it passes to the
// hooks of -finstrument-functions do not count. Reads only code, and slots through which
// it jumps; takes some microseconds.
bool uses_its_caller(uintptr_t function);

// Whether the function's first instructions call a compiled-in hook. On aarch64: no.
bool calls_compiled_in_hook(uintptr_t function);

// Finds libc, and the sanitizers that are loaded: libraries, or a part of the program.
void find_runtimes();

// Whether the library function is a sanitizer's, which shows the stack of its caller.
bool is_of_sanitizer(uintptr_t function);

// Whether the function is libc's.
bool is_of_libc(uintptr_t function);

// Whether the function was compiled with a hook that records it.
bool has_own_hook(uintptr_t function);

struct JumpTarget {
  uintptr_t function;  // 0: not known
  bool is_entry_only;  // entry-only: by its name, it must not be called through
};

// The target of a jump through a slot that has the value `target`, which may be a stub of
// ours.
JumpTarget jump_target(uintptr_t target);

// The name of the function whose jump slot has this index, in the module that has `code`;
// null: there is none.
const char* name_of_slot(uintptr_t code, uint64_t index);

// As jump_target(), for a slot that the loader has not bound yet.
JumpTarget unbound_target(const char* name);

// Some programs copy a part of a thread's stack away, use its memory for something else,
// and copy it back later: greenlet, and gevent on top of it. There a return address of
// ours may come back when its call is forgotten, or was replaced by another one in the
// same slot. So once such a module is loaded, a call is only called through if no code of
// the program can run inside it; other calls are entry-only.

// Checks the path of a module that is loaded, before any of its functions runs.
void detect_stack_copier(const char* path);

// Whether the stack may be copied while a call of `name` runs, which is at `target`.
bool may_copy_stack_inside(const char* name, uintptr_t target);

}  // namespace arctrace::shim
