// The beginning and end of the process. The time of constructors and that of exit
// handlers can be distinguished from main's own: main is called through the shim, which
// leaves no frame on the stack, and a handler of the shim's is always the one that exit()
// calls first.
#include <stdlib.h>

#include "src/base/raw_syscall.hpp"
#include "writer_shim/base/glibc.hpp"
#include "writer_shim/elf/symbol_search.hpp"
#include "writer_shim/functions/function_hooks.hpp"
#include "writer_shim/libc/hook.hpp"

namespace arctrace::shim {
namespace {

using Main = int(int, char**, char**);
using StartMain = int(Main*, int, char**, void (*)(), void (*)(), void (*)(), void*);
using AtExit = int(void (*)(void*), void*, void*);

RealFunction<StartMain> real_start_main("__libc_start_main");
RealFunction<AtExit> real_at_exit("__cxa_atexit");
Main* program_main = nullptr;
uint32_t is_in_main = 0;

void leave_main(int, void*) {
  if (IpcAtomics::exchange_acq_rel(is_in_main, uint32_t{0}) != 0) {
    arctrace_shim_process_phase(ARCTRACE_LIFE_EXIT);
  }
}

// The call of main is a jump, so that a program that examines its own stack finds the
// same frames as without the shim.
int run_main(int argument_count, char** arguments, char** environment) {
  arctrace_shim_process_phase(ARCTRACE_LIFE_MAIN);
  IpcAtomics::store_relaxed(is_in_main, uint32_t{1});
  on_exit(leave_main, nullptr);
  return program_main(argument_count, arguments, environment);
}

}  // namespace
}  // namespace arctrace::shim

using namespace arctrace;  // the C functions below are the namespace's face
using namespace arctrace::shim;

ARCTRACE_HOOK int __libc_start_main(Main* main, int argument_count, char** arguments,
                                    void (*init)(), void (*fini)(), void (*loader_fini)(),
                                    void* stack_end) {
  program_main = main;
  const bool is_recorded = has_session() && is_glibc();
  return real_start_main.get()(is_recorded ? run_main : main, argument_count, arguments,
                               init, fini, loader_fini, stack_end);
}

// atexit() calls it too. Handlers are called in the reverse order.
ARCTRACE_HOOK int __cxa_atexit(void (*handler)(void*), void* argument, void* module) {
  const int result = real_at_exit.get()(handler, argument, module);
  if (IpcAtomics::load_relaxed(is_in_main) != 0) on_exit(leave_main, nullptr);
  return result;
}

// The end by exit() is noticed by on_exit(), which gives the status; _exit() and _Exit()
// are hooked.

namespace arctrace::shim {
namespace {

// The loader registers its run of all destructors just before main, after our
// constructor. So this handler is called after these, last of all.
void end(int status, void*) {
  report_overwritten_sleds();
  arctrace_shim_process_end(ARCTRACE_END_EXIT, status);
}

// The next functions of that name: libc's, or others before it; a sanitizer's report what
// it found.
using End = void(int status);
constinit End* real_exit = nullptr;
constinit End* real_exit_of_c = nullptr;

[[noreturn]] void exit_directly(End* real, int status) {
  if (!in_vfork_child()) {
    report_overwritten_sleds();
    arctrace_shim_process_end(ARCTRACE_END_EXIT_DIRECT, status);
  }
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

// Defaults for a program whose AddressSanitizer is a library (gcc's). The sanitizer
// refuses to run if another library comes before it, as a preloaded one does. The shim
// may come first, because it calls the functions that it replaces. The program's own
// function of this name, and ASAN_OPTIONS, have precedence.

ARCTRACE_HOOK const char* __asan_default_options() { return "verify_asan_link_order=0"; }
