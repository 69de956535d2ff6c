// The time of constructors and that of exit handlers are known apart from main's own:
// main is called through the shim, which leaves no frame on the stack, and a handler of
// the shim's is always the one that exit() calls first.
#include "writer_shim/base/glibc.hpp"
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

// The call of main is a jump, so that a program that looks at its own stack finds the
// same frames as ever.
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
