// main is called through the shim, so that the time of constructors and that of exit
// handlers are known apart from main's own.
#include "writer_shim/base/hook.hpp"

namespace arctrace::shim {
namespace {

using Main = int(int, char**, char**);
using StartMain = int(Main*, int, char**, void (*)(), void (*)(), void (*)(), void*);

RealFunction<StartMain> real_start_main("__libc_start_main");
Main* program_main = nullptr;

int run_main(int argument_count, char** arguments, char** environment) {
  arctrace_shim_process_phase(ARCTRACE_LIFE_MAIN);
  const int status = program_main(argument_count, arguments, environment);
  arctrace_shim_process_phase(ARCTRACE_LIFE_EXIT);
  return status;
}

}  // namespace
}  // namespace arctrace::shim

using namespace arctrace::shim;

ARCTRACE_HOOK int __libc_start_main(Main* main, int argument_count, char** arguments,
                                    void (*init)(), void (*fini)(), void (*loader_fini)(),
                                    void* stack_end) {
  program_main = main;
  return real_start_main.get()(has_session() ? run_main : main, argument_count, arguments,
                               init, fini, loader_fini, stack_end);
}
