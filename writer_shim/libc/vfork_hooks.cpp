// vfork cannot be wrapped in C, because the child returns from the function first and
// overwrites the frame through which the parent would return. So the hook makes the
// system call itself and keeps the return address in a register, of which each has its
// own.
#include "writer_shim/libc/vfork_hooks.hpp"

#include <errno.h>

#include "writer_shim/libc/hook.hpp"

namespace arctrace::shim {
namespace {

// The vforks in progress in this thread; that of a vfork child counts too.
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

// Called in the parent, when the child has executed a program or ended. Returns what
// vfork returns.
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
