// prctl, and syscall for what has no function in libc: how a thread names itself, and how
// a process confines itself, so that the kernel would kill it for a system call of ours.
#include "writer_shim/prctl_hooks.hpp"

#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "writer_shim/hook.hpp"
#include "writer_shim/library_hooks.hpp"

namespace arctrace::shim {
namespace {

RealFunction<int(int, ...)> real_prctl("prctl");
RealFunction<long(long, ...)> real_syscall("syscall");

// Only strict seccomp forbids to read the counter. What a filter allows we can't know.
void before_seccomp(bool is_strict) {
  name_all_library_calls();
  arctrace_shim_no_system_calls();
  if (is_strict) arctrace_shim_no_counter();
}

}  // namespace

void find_prctl_functions() {
  real_prctl.get();
  real_syscall.get();
}

}  // namespace arctrace::shim

using namespace arctrace::shim;

ARCTRACE_HOOK int prctl(int option, ...) noexcept {
  unsigned long arguments[4];
  va_list list;
  va_start(list, option);
  for (unsigned long& argument : arguments) argument = va_arg(list, unsigned long);
  va_end(list);
  if (option == PR_SET_SECCOMP) before_seccomp(arguments[0] == SECCOMP_MODE_STRICT);
  if (option == PR_SET_TSC && arguments[0] == PR_TSC_SIGSEGV) arctrace_shim_no_counter();
  const int result =
      real_prctl.get()(option, arguments[0], arguments[1], arguments[2], arguments[3]);
  if (option == PR_SET_NAME && result == 0) arctrace_thread_name(nullptr);
  return result;
}

ARCTRACE_HOOK long syscall(long number, ...) noexcept {
  long arguments[6];
  va_list list;
  va_start(list, number);
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  if (number == SYS_seccomp && (arguments[0] == SECCOMP_SET_MODE_STRICT ||
                                arguments[0] == SECCOMP_SET_MODE_FILTER)) {
    before_seccomp(arguments[0] == SECCOMP_SET_MODE_STRICT);
  }
  return real_syscall.get()(number, arguments[0], arguments[1], arguments[2],
                            arguments[3], arguments[4], arguments[5]);
}
