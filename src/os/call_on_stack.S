/* void arctrace_call_on_stack(void (*run)(void* data), void* data, void* stack_end): calls
 * run(data) on the stack that ends there, at an address that is a multiple of 16. */
#include <cet.h>

  .text
  .globl arctrace_call_on_stack
  .hidden arctrace_call_on_stack
  .type arctrace_call_on_stack, @function
  .p2align 4
arctrace_call_on_stack:
  .cfi_startproc
  endbr64
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  movq %rsp, %rbp
  .cfi_def_cfa_register %rbp
  movq %rdx, %rsp
  movq %rdi, %rax
  movq %rsi, %rdi
  call *%rax
  leave
  .cfi_def_cfa %rsp, 8
  ret
  .cfi_endproc
  .size arctrace_call_on_stack, . - arctrace_call_on_stack

  .section .note.GNU-stack,"",@progbits
