#include "writer_shim/libc/fork_hooks.hpp"

#include <errno.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include <cstdint>

#include "writer_shim/base/glibc.hpp"
#include "writer_shim/libc/hook.hpp"
#include "writer_shim/libc/thread_hooks.hpp"

namespace arctrace::shim {
namespace {

RealFunction<pid_t()> real_fork_without_handlers("_Fork");  // since glibc 2.34

// When this thread called fork; the child has a copy. initial-exec, because the dynamic
// TLS model may allocate.
thread_local constinit uint64_t forking_since __attribute__((tls_model("initial-exec"))) =
    0;

// Called in a child that libc has forked, after libc has set the thread's id.
void in_fork_child() { arctrace_shim_forked(thread_id(pthread_self()), forking_since); }

// Of a call that has succeeded, so that what it points to is there.
bool shares_memory(long number, const long* arguments) {
  if (number == SYS_clone) return (arguments[0] & CLONE_VM) != 0;
  if (number != SYS_clone3) return false;
  const auto* wanted = reinterpret_cast<const clone_args*>(arguments[0]);
  return (wanted->flags & CLONE_VM) != 0;
}

}  // namespace

void prepare_fork_hooks() {
  __register_atfork(before_fork, nullptr, in_fork_child, nullptr);
  real_fork_without_handlers.get();
}

bool may_fork(long number) {
#ifdef SYS_fork
  if (number == SYS_fork) return true;
#endif
  return number == SYS_clone || number == SYS_clone3;
}

// Called in the thread that forks, after the program's own handlers.
void before_fork() { forking_since = arctrace_shim_before_fork(); }

// libc does not know the child, and takes its thread for the parent's.
void in_child_of_syscall(long number, const long* arguments) {
  if (!shares_memory(number, arguments)) arctrace_shim_forked(0, forking_since);
}

}  // namespace arctrace::shim

using namespace arctrace::shim;

ARCTRACE_HOOK pid_t _Fork() noexcept {
  auto* real = real_fork_without_handlers.get();
  if (real == nullptr) {
    errno = ENOSYS;
    return -1;
  }
  before_fork();
  const pid_t pid = real();
  if (pid == 0) in_fork_child();
  return pid;
}
