/* Calls a function with q0 to q7 saved on the stack around it: these may hold arguments or
 * a return value. The function keeps what its callers may expect of the other vector
 * registers. SVE's longer registers are kept in their first 16 bytes. */
#include "writer_shim/arch/aarch64/branch_targets.inc"

  .text
  .globl arctrace_keep_vectors
  .hidden arctrace_keep_vectors
  .type arctrace_keep_vectors, %function
  .p2align 4
arctrace_keep_vectors:
  .cfi_startproc
  hint #34 /* bti c */
  stp x29, x30, [sp, #-144]!
  .cfi_def_cfa_offset 144
  .cfi_offset x29, -144
  .cfi_offset x30, -136
  mov x29, sp
  stp q0, q1, [sp, #16]
  stp q2, q3, [sp, #48]
  stp q4, q5, [sp, #80]
  stp q6, q7, [sp, #112]
  mov x9, x0
  mov x0, x1
  mov w1, w2
  blr x9
  ldp q0, q1, [sp, #16]
  ldp q2, q3, [sp, #48]
  ldp q4, q5, [sp, #80]
  ldp q6, q7, [sp, #112]
  ldp x29, x30, [sp], #144
  .cfi_restore x29
  .cfi_restore x30
  .cfi_def_cfa_offset 0
  ret
  .cfi_endproc
  .size arctrace_keep_vectors, . - arctrace_keep_vectors

  .section .note.GNU-stack,"",%progbits
