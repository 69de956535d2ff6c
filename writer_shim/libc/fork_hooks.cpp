// The hooks of fork, vfork and clone.
#include <errno.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include <cstdint>

#include "writer_shim/base/glibc.hpp"
#include "writer_shim/libc/hook.hpp"
#include "writer_shim/plt/own_work.hpp"

namespace arctrace::shim {
namespace {

RealFunction<pid_t()> real_fork_without_handlers("_Fork");  // since glibc 2.34

// The time at which this thread called fork; the child has a copy. The model is
// initial-exec, because the dynamic TLS model may allocate.
thread_local constinit uint64_t forking_since __attribute__((tls_model("initial-exec"))) =
    0;

// What the child needs to record is the tracer's work, also that of its first record,
// which this makes where the next one would be the end of fork().
void begin_in_child(uint32_t pid) {
  const OwnWork beginning(arctrace_shim_forked(pid, forking_since) != 0);
}

// libc calls this in a child that it has forked, after it has set the thread's id.
void in_fork_child() { begin_in_child(thread_id(pthread_self())); }

// Whether a call made a task that shares the memory. Because the call has succeeded, the
// data to which its arguments point is there.
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

// libc calls this in the thread that forks, after the program's own handlers.
void before_fork() {
  if (arctrace_shim_tells_own_work() != 0) OwnWork::define_name();
  forking_since = arctrace_shim_before_fork();
}

// To be called in a child that libc does not know, and whose thread libc takes for the
// parent's.
void in_child_of_syscall(long number, const long* arguments) {
  if (!shares_memory(number, arguments)) begin_in_child(0);
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

// vfork cannot be wrapped in C, because the child returns from the function first and
// overwrites the frame through which the parent would return. So the hook makes the
// system call itself and keeps the return address in a register, because parent and child
// each have their own registers.
namespace arctrace::shim {
namespace {

// The vforks in progress in this thread; in a vfork child, the one that made it counts,
// too.
thread_local constinit uint32_t vforks __attribute__((tls_model("initial-exec"))) = 0;

}  // namespace

bool in_vfork_child() { return vforks != 0; }

void begin_vfork() {
  if (vforks++ == 0) arctrace_shim_vfork_begin();
}

void end_vfork(long pid) {
  if (--vforks == 0) arctrace_shim_vfork_end(pid > 0 ? static_cast<uint32_t>(pid) : 0);
}

}  // namespace arctrace::shim

extern "C" __attribute__((used)) void arctrace_before_vfork(void) {
  arctrace::shim::begin_vfork();
}

// The hook calls this in the parent, when the child has executed a program or ended.
// Returns the result of vfork.
extern "C" __attribute__((used)) int arctrace_after_vfork(long result) {
  arctrace::shim::end_vfork(result);
  if (result >= 0) return static_cast<int>(result);
  errno = static_cast<int>(-result);
  return -1;
}

#if defined(__x86_64__)
asm(R"(
  .text
  .globl vfork
  .type vfork, @function
  .globl __vfork
  .type __vfork, @function
  .p2align 4
vfork:
__vfork:
  .cfi_startproc
  endbr64
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call arctrace_before_vfork
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  .cfi_register %rip, %rdi
  movl $58, %eax
  syscall
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %rip, 0
  testq %rax, %rax
  je 1f
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  movq %rax, %rdi
  call arctrace_after_vfork
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
1:
  ret
  .cfi_endproc
  .size vfork, . - vfork
  .size __vfork, . - __vfork
)");
#elif defined(__aarch64__)
asm(R"(
  .text
  .globl vfork
  .type vfork, %function
  .globl __vfork
  .type __vfork, %function
  .p2align 4
vfork:
__vfork:
  .cfi_startproc
  hint #34
  stp x29, x30, [sp, #-16]!
  .cfi_adjust_cfa_offset 16
  .cfi_rel_offset x29, 0
  .cfi_rel_offset x30, 8
  bl arctrace_before_vfork
  ldp x29, x30, [sp], #16
  .cfi_adjust_cfa_offset -16
  .cfi_restore x29
  .cfi_restore x30
  mov x0, #0x4111
  mov x1, #0
  mov x2, #0
  mov x3, #0
  mov x4, #0
  mov x8, #220
  svc #0
  cbz x0, 1f
  b arctrace_after_vfork
1:
  ret
  .cfi_endproc
  .size vfork, . - vfork
  .size __vfork, . - __vfork
)");
#endif

// Hooks clone, which may make a task that shares the memory and the thread-local storage
// of its parent while both run.
namespace arctrace::shim {
namespace {

using Clone = int(int (*function)(void*), void* stack, int flags, void* argument, ...);
constinit RealFunction<Clone> real_clone("clone");

bool shares_storage(int flags) {
  return (flags & CLONE_VM) != 0 && (flags & CLONE_SETTLS) == 0;
}

}  // namespace

void find_clone() { real_clone.get(); }

}  // namespace arctrace::shim

using namespace arctrace::shim;

// The child begins in `function` on a stack of its own: it does not return from here.
ARCTRACE_HOOK int clone(int (*function)(void*), void* stack, int flags, void* argument,
                        ...) noexcept {
  va_list list;
  va_start(list, argument);
  void* const parent_tid = va_arg(list, void*);
  void* const tls = va_arg(list, void*);
  void* const child_tid = va_arg(list, void*);
  va_end(list);
  const auto call = [&] {
    return real_clone.get()(function, stack, flags, argument, parent_tid, tls, child_tid);
  };
  if (!shares_storage(flags) || !has_session()) return call();
  if ((flags & CLONE_VFORK) == 0) {
    arctrace_shim_shares_storage();
    return call();
  }
  begin_vfork();
  const int pid = call();
  end_vfork(pid);
  return pid;
}

extern "C" __attribute__((visibility("default"), alias("clone"))) int __clone(
    int (*function)(void*), void* stack, int flags, void* argument, ...) noexcept;
