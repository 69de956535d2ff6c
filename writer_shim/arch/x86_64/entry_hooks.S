/* mcount and __fentry__, which functions call at their entry, with all of their arguments
 * in registers: the hooks change none of these, and no vector register. The fast path
 * needs no aligned stack. Also the stub of exit-hooked functions. */
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

/* On entry, the address of the function's LibraryCall is in r11, its return address on
 * the stack. The hook keeps all registers, and finds those that are pushed here: rbp and
 * r11 below the return address (ARCTRACE_SHIM_ENTERED_CALL). */
  .globl arctrace_exit_hooked_entry
  .hidden arctrace_exit_hooked_entry
  .type arctrace_exit_hooked_entry, @function
  .p2align 4
arctrace_exit_hooked_entry:
  .cfi_startproc
  push_register %rbp
  push_register %r11
  notrack call *arctrace_shim_function_entry@GOTPCREL(%rip)
  pop_register %r11
  pop_register %rbp
  jmp *(%r11)
  .cfi_endproc
  .size arctrace_exit_hooked_entry, . - arctrace_exit_hooked_entry

  .section .note.GNU-stack,"",@progbits
