// prctl: the calling thread's name, and strict seccomp, under which the kernel kills
// whoever makes another system call than read, write and exit.
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>

#include "writer_shim/hook.hpp"

namespace arctrace::shim {
namespace {

RealFunction<int(int, ...)> real_prctl("prctl");

}  // namespace
}  // namespace arctrace::shim

using namespace arctrace::shim;

ARCTRACE_HOOK int prctl(int option, ...) noexcept {
  unsigned long arguments[4];
  va_list list;
  va_start(list, option);
  for (unsigned long& argument : arguments) argument = va_arg(list, unsigned long);
  va_end(list);
  if (option == PR_SET_SECCOMP) arctrace_shim_no_system_calls();
  const int result =
      real_prctl.get()(option, arguments[0], arguments[1], arguments[2], arguments[3]);
  if (option == PR_SET_NAME && result == 0) arctrace_thread_name(nullptr);
  return result;
}
