/* mcount and __fentry__: called by functions at their entry, with all of their arguments
 * in registers. They change none, and no vector register is touched. */
#include <cet.h>

  .macro entry_hook name, called
  .globl \name
  .type \name, @function
  .p2align 4
\name:
  .cfi_startproc
  endbr64
  pushq %rax
  .cfi_adjust_cfa_offset 8
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  pushq %rdx
  .cfi_adjust_cfa_offset 8
  pushq %rcx
  .cfi_adjust_cfa_offset 8
  pushq %r8
  .cfi_adjust_cfa_offset 8
  pushq %r9
  .cfi_adjust_cfa_offset 8
  pushq %r10
  .cfi_adjust_cfa_offset 8
  pushq %r11
  .cfi_adjust_cfa_offset 8
  movq 72(%rsp), %rdi
  leaq 80(%rsp), %rsi
  movq %rbp, %rdx
  pushq %rbp
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %rbp, 0
  movq %rsp, %rbp
  .cfi_def_cfa_register %rbp
  andq $-16, %rsp
  call \called
  movq %rbp, %rsp
  .cfi_def_cfa_register %rsp
  popq %rbp
  .cfi_adjust_cfa_offset -8
  .cfi_restore %rbp
  popq %r11
  .cfi_adjust_cfa_offset -8
  popq %r10
  .cfi_adjust_cfa_offset -8
  popq %r9
  .cfi_adjust_cfa_offset -8
  popq %r8
  .cfi_adjust_cfa_offset -8
  popq %rcx
  .cfi_adjust_cfa_offset -8
  popq %rdx
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  popq %rax
  .cfi_adjust_cfa_offset -8
  ret
  .cfi_endproc
  .size \name, . - \name
  .endm

  .text
  entry_hook __fentry__, arctrace_fentry_called
  entry_hook mcount, arctrace_mcount_called
  .globl _mcount
  .type _mcount, @function
  .set _mcount, mcount

  .section .note.GNU-stack,"",@progbits
