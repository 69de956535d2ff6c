// prctl, and syscall for what has no function in libc: how a thread names itself, and how
// a process confines itself, so that the kernel would kill it for a system call of ours.
#include "writer_shim/prctl_hooks.hpp"

#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "writer_shim/call_table.hpp"
#include "writer_shim/hook.hpp"

namespace arctrace::shim {
namespace {

RealFunction<int(int, ...)> real_prctl("prctl");
RealFunction<long(long, ...)> real_syscall("syscall");

// Calls the kernel with what may confine this process by seccomp. What a filter allows we
// can't know; strict seccomp forbids to read the counter, too.
template <typename Call>
auto confine(bool is_strict, Call call) {
  name_all_library_calls();
  arctrace_shim_no_system_calls();
  if (is_strict) arctrace_shim_no_counter();
  const auto result = call();
  // A coarse clock can't be taken back: it may be ahead.
  if (result < 0 && !is_strict) arctrace_shim_system_calls_again();
  return result;
}

// libseccomp asks what the kernel can do by calls of which it knows that they fail.
bool confines(unsigned long operation, unsigned long flags, unsigned long filter) {
  if (operation == SECCOMP_SET_MODE_STRICT) return flags == 0 && filter == 0;
  return operation == SECCOMP_SET_MODE_FILTER && filter != 0;
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
  if (option == PR_SET_TSC && arguments[0] == PR_TSC_SIGSEGV) arctrace_shim_no_counter();
  const auto call = [&] {
    return real_prctl.get()(option, arguments[0], arguments[1], arguments[2],
                            arguments[3]);
  };
  const bool is_strict = arguments[0] == SECCOMP_MODE_STRICT;
  const bool is_filter = arguments[0] == SECCOMP_MODE_FILTER && arguments[1] != 0;
  const int result = option == PR_SET_SECCOMP && (is_strict || is_filter)
                         ? confine(is_strict, call)
                         : call();
  if (option == PR_SET_NAME && result == 0) arctrace_thread_name(nullptr);
  return result;
}

ARCTRACE_HOOK long syscall(long number, ...) noexcept {
  long arguments[6];
  va_list list;
  va_start(list, number);
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  const auto call = [&] {
    return real_syscall.get()(number, arguments[0], arguments[1], arguments[2],
                              arguments[3], arguments[4], arguments[5]);
  };
  if (number == SYS_seccomp && confines(static_cast<unsigned long>(arguments[0]),
                                        static_cast<unsigned long>(arguments[1]),
                                        static_cast<unsigned long>(arguments[2]))) {
    return confine(arguments[0] == SECCOMP_SET_MODE_STRICT, call);
  }
  return call();
}
