// exec and its relatives: the new program goes on in the session.
#pragma once

namespace arctrace::shim {

// Looks up libc's functions ahead of use: a vfork child should not.
void find_exec_functions();

// Like arctrace_shim_executes, of the program that libc will find for `file` by PATH.
void say_found(const char* file);

}  // namespace arctrace::shim
