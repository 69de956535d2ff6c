// Hooks prctl and syscall. A thread may name itself by them, and a process may confine
// itself by seccomp, after which the kernel may kill it for a system call of ours.
// syscall() is hooked because libc has no function for the latter, and because it may
// fork.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "src/base/memory.hpp"
#include "writer_shim/libc/hook.hpp"
#include "writer_shim/plt/call_table.hpp"

namespace arctrace::shim {
namespace {

RealFunction<int(int, ...)> real_prctl("prctl");
RealFunction<long(long, ...)> real_syscall("syscall");

// Returns call(), which may confine this process by a seccomp filter; null: strictly,
// which also forbids to read the time-stamp counter.
template <typename Call>
auto confine(const sock_fprog* filter, Call call) {
  const uint32_t forbidden = arctrace_shim_forbidden_by(filter);
  if (forbidden == 0) return call();
  name_all_library_calls();
  arctrace_shim_forbid(forbidden);
  if (filter == nullptr) arctrace_shim_no_counter();
  const auto result = call();
  // The coarse clock that replaced the counter stays, because its time may be ahead of
  // the counter's.
  if (result < 0 && filter != nullptr) arctrace_shim_take_back_forbidden(forbidden);
  return result;
}

const sock_fprog* filter_at(unsigned long address) {
  return reinterpret_cast<const sock_fprog*>(address);
}

// Records the thread's name, which the kernel has read already, and cut to 15 bytes.
void report_name(unsigned long address) {
  char name[16];
  const auto* given = reinterpret_cast<const char*>(address);
  const size_t length = text_length(given, sizeof name - 1);
  copy_bytes(name, given, length);
  name[length] = '\0';
  arctrace_thread_name(name);
}

// Whether the call may succeed: libseccomp finds out what the kernel can do by calls that
// must fail.
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
                         ? confine(is_strict ? nullptr : filter_at(arguments[1]), call)
                         : call();
  if (option == PR_SET_NAME && result == 0) report_name(arguments[0]);
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
    const bool is_strict = arguments[0] == SECCOMP_SET_MODE_STRICT;
    return confine(
        is_strict ? nullptr : filter_at(static_cast<unsigned long>(arguments[2])), call);
  }
  if (may_fork(number)) {
    before_fork();
    const long result = call();
    if (result == 0) in_child_of_syscall(number, arguments);
    return result;
  }
  return call();
}
