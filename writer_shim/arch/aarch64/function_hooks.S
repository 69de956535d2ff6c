/* The hooks of -finstrument-functions (function_hooks.h). On entry, the function is in
 * x0, the call site in x1. */
#include "writer_shim/arch/aarch64/branch_targets.inc"

  .macro function_hook name, fast, slow
  .globl \name
  .type \name, %function
  .p2align 4
\name:
  .cfi_startproc
  hint #34 /* bti c */
  adrp x16, \fast
  ldr x16, [x16, #:lo12:\fast]
  mov x2, sp
  mov x3, x29
  mov x4, x30
  cbz x16, 1f
  br x16
1:
  b \slow
  .cfi_endproc
  .size \name, . - \name
  .endm

  .text
  function_hook __cyg_profile_func_enter, arctrace_fast_enter_hook, arctrace_function_entered
  function_hook __cyg_profile_func_exit, arctrace_fast_exit_hook, arctrace_function_exited

  .section .note.GNU-stack,"",%progbits
