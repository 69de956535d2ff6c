// exit() is seen through on_exit(), which gives the status; _exit() and _Exit() are
// hooked.
#include "writer_shim/libc/end_hooks.hpp"

#include <stdlib.h>

#include "src/base/raw_syscall.hpp"
#include "writer_shim/base/glibc.hpp"
#include "writer_shim/elf/symbol_search.hpp"
#include "writer_shim/libc/hook.hpp"
#include "writer_shim/libc/vfork_hooks.hpp"

namespace arctrace::shim {
namespace {

// The loader registers its run of all destructors just before main, after our
// constructor. So this is called after them, last of all.
void end(int status, void*) { arctrace_shim_process_end(ARCTRACE_END_EXIT, status); }

// Libc's, or those of others that stand before it: a sanitizer's report what it found.
using End = void(int status);
constinit End* real_exit = nullptr;
constinit End* real_exit_of_c = nullptr;

[[noreturn]] void exit_directly(End* real, int status) {
  if (!in_vfork_child()) arctrace_shim_process_end(ARCTRACE_END_EXIT_DIRECT, status);
  if (real != nullptr) real(status);
  for (;;) raw_syscall(SYS_exit_group, status);
}

}  // namespace

void find_exit_functions() {
  const auto find = [](const char* name) {
    return reinterpret_cast<End*>(find_function(name, SearchFrom::kNext));
  };
  real_exit = find("_exit");
  real_exit_of_c = find("_Exit");
}

void watch_exit() { on_exit(end, nullptr); }

}  // namespace arctrace::shim

ARCTRACE_HOOK __attribute__((noreturn)) void _exit(int status) {
  arctrace::shim::exit_directly(arctrace::shim::real_exit, status);
}

ARCTRACE_HOOK __attribute__((noreturn)) void _Exit(int status) noexcept {
  arctrace::shim::exit_directly(arctrace::shim::real_exit_of_c, status);
}
