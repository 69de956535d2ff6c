/* mcount and __fentry__, which functions call at their entry, with all of their arguments in
 * registers: the hooks change none of these, and no vector register. The fast path needs no
 * aligned stack. */
#include <cet.h>

#include "writer_shim/arch/x86_64/saved_registers.inc"

  .macro entry_hook name, called, fast=
  .globl \name
  .type \name, @function
  .p2align 4
\name:
  .cfi_startproc
  endbr64
  push_arguments
  push_register %r11
  .ifnb \fast
  movq 72(%rsp), %rdi
  movq %rbp, %rsi
  call \fast
  testl %eax, %eax
  jz 1f
  leaq arctrace_exchanged_returns(%rip), %rax
  movq %rax, 8(%rbp)
  .cfi_remember_state
  pop_register %r11
  pop_arguments
  ret
  .cfi_restore_state
1:
  .endif
  movq 72(%rsp), %rdi
  leaq 80(%rsp), %rsi
  movq %rbp, %rdx
  push_register %rbp
  .cfi_rel_offset %rbp, 0
  movq %rsp, %rbp
  .cfi_def_cfa_register %rbp
  andq $-16, %rsp
  call \called
  movq %rbp, %rsp
  .cfi_def_cfa_register %rsp
  pop_register %rbp
  .cfi_restore %rbp
  pop_register %r11
  pop_arguments
  ret
  .cfi_endproc
  .size \name, . - \name
  .endm

  .text
  entry_hook __fentry__, arctrace_fentry_called
  entry_hook mcount, arctrace_mcount_called, arctrace_mcount_called_fast
  .globl _mcount
  .type _mcount, @function
  .set _mcount, mcount

  .section .note.GNU-stack,"",@progbits
