#include "writer_shim/end_hooks.hpp"

#include <stdlib.h>

#include "src/raw_syscall.hpp"
#include "writer_shim/hook.hpp"
#include "writer_shim/vfork_hooks.hpp"

namespace arctrace::shim {
namespace {

int exit_status = -1;

void note_status(int status, void*) { exit_status = status; }

// Behind all that the program registered with atexit, and behind its own destructors.
__attribute__((destructor)) void end() {
  arctrace_shim_process_end(ARCTRACE_END_EXIT, exit_status);
}

[[noreturn]] void exit_directly(int status) {
  if (!in_vfork_child()) arctrace_shim_process_end(ARCTRACE_END_EXIT_DIRECT, status);
  for (;;) raw_syscall(SYS_exit_group, status);
}

}  // namespace

void watch_exit() { on_exit(note_status, nullptr); }

}  // namespace arctrace::shim

ARCTRACE_HOOK [[noreturn]] void _exit(int status) {
  arctrace::shim::exit_directly(status);
}

ARCTRACE_HOOK [[noreturn]] void _Exit(int status) noexcept {
  arctrace::shim::exit_directly(status);
}
