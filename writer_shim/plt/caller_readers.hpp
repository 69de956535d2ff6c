// Finds the functions that the shim does not call through, although nothing in their
// names says so: those of sanitizers, and those that have hooks of their own.
#pragma once

#include <cstdint>

namespace arctrace::shim {

// Finds libc, and the sanitizers that are loaded: libraries, or a part of the program.
void find_runtimes();

// Whether the library function is a sanitizer's, which reports the stack of its caller.
bool is_of_sanitizer(uintptr_t function);

// Whether the function is libc's.
bool is_of_libc(uintptr_t function);

// Whether the function was compiled with a hook that records it.
bool has_own_hook(uintptr_t function);

struct JumpTarget {
  uintptr_t function;  // 0: not known
  bool is_passed;      // one whose name says that it must not be called through
};

// Where a jump through a slot leads that holds `target`, which may be a stub of ours.
JumpTarget jump_target(uintptr_t target);

// The name of the function whose jump slot has this index, in the module that has `code`;
// null: there is none.
const char* name_of_slot(uintptr_t code, uint64_t index);

// The same as jump_target() of a slot that the loader has not bound yet.
JumpTarget unbound_target(const char* name);

}  // namespace arctrace::shim
