// exit() is seen through on_exit(), which gives the status; _exit() and _Exit() are
// hooked, and make the system call themselves.
#include "writer_shim/libc/end_hooks.hpp"

#include <stdlib.h>

#include "src/base/raw_syscall.hpp"
#include "writer_shim/base/glibc.hpp"
#include "writer_shim/libc/hook.hpp"
#include "writer_shim/libc/vfork_hooks.hpp"

namespace arctrace::shim {
namespace {

// The loader registers its run of all destructors just before main, after our
// constructor. So this is called after them, last of all.
void end(int status, void*) { arctrace_shim_process_end(ARCTRACE_END_EXIT, status); }

[[noreturn]] void exit_directly(int status) {
  if (!in_vfork_child()) arctrace_shim_process_end(ARCTRACE_END_EXIT_DIRECT, status);
  for (;;) raw_syscall(SYS_exit_group, status);
}

}  // namespace

void watch_exit() { on_exit(end, nullptr); }

}  // namespace arctrace::shim

ARCTRACE_HOOK __attribute__((noreturn)) void _exit(int status) {
  arctrace::shim::exit_directly(status);
}

ARCTRACE_HOOK __attribute__((noreturn)) void _Exit(int status) noexcept {
  arctrace::shim::exit_directly(status);
}
