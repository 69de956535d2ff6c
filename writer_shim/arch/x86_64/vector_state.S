/* Calls a function with the vector state saved on the stack around it. */
#include "writer_shim/arch/x86_64/saved_registers.inc"
#include "writer_shim/arch/x86_64/vector_state.h"

  .text
  .globl arctrace_keep_vectors
  .hidden arctrace_keep_vectors
  .type arctrace_keep_vectors, @function
  .p2align 4
arctrace_keep_vectors:
  .cfi_startproc
  push_register %rbx
  .cfi_rel_offset %rbx, 0
  movq %rsp, %rbx
  .cfi_def_cfa_register %rbx
  subq arctrace_vector_bytes(%rip), %rsp
  andq $-64, %rsp
  movq %rdi, %r11
  movq %rsi, %rdi
  movl %edx, %esi
  /* XSAVE only adds to this list, and XRSTOR reads it. */
  xorl %eax, %eax
  .set offset, ARCTRACE_VECTOR_HEADER
  .rept (ARCTRACE_VECTOR_HEADER_END - ARCTRACE_VECTOR_HEADER) / 8
  movq %rax, offset(%rsp)
  .set offset, offset + 8
  .endr
  movl arctrace_vector_parts(%rip), %eax
  xorl %edx, %edx
  xsave (%rsp)
  call *%r11
  movq %rax, %r11
  movl arctrace_vector_parts(%rip), %eax
  xorl %edx, %edx
  xrstor (%rsp)
  movq %r11, %rax
  movq %rbx, %rsp
  .cfi_def_cfa_register %rsp
  pop_register %rbx
  .cfi_restore %rbx
  ret
  .cfi_endproc
  .size arctrace_keep_vectors, . - arctrace_keep_vectors

  .section .note.GNU-stack,"",@progbits
