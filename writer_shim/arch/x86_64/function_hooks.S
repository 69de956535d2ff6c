/* The hooks of -finstrument-functions (function_hooks.h). On entry, the function is in
 * rdi, the call site in rsi. */
#include <cet.h>

  .macro function_hook name, fast, slow
  .globl \name
  .type \name, @function
  .p2align 4
\name:
  .cfi_startproc
  endbr64
  movq \fast(%rip), %rax
  leaq 8(%rsp), %rdx
  movq %rbp, %rcx
  movq (%rsp), %r8
  testq %rax, %rax
  jz \slow
  jmp *%rax
  .cfi_endproc
  .size \name, . - \name
  .endm

  .text
  function_hook __cyg_profile_func_enter, arctrace_fast_enter_hook, arctrace_function_entered
  function_hook __cyg_profile_func_exit, arctrace_fast_exit_hook, arctrace_function_exited

  .section .note.GNU-stack,"",@progbits
