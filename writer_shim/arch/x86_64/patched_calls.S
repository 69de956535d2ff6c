/* The beginning of a patched function's call. Callers of such functions may rely on any
 * register that the function itself does not change (-fipa-ra): r10, r11, the flags, and
 * in the end those of arguments. Vector registers are never changed. */
#include <cet.h>

#include "writer_shim/arch/x86_64/saved_flags.inc"
#include "writer_shim/arch/x86_64/saved_registers.inc"

/* Restores all registers. Before it, rsp is 88 below the return slot, and r11 is the
 * target, which ends up 80 below the slot. */
  .macro restore_registers
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  pop_register %rax
  rax_to_flags
  movq %r11, -8(%rsp)
  pop_register %r11
  pop_arguments
  .endm

  .text
  .globl arctrace_patched_begins
  .hidden arctrace_patched_begins
  .type arctrace_patched_begins, @function
  .p2align 4
arctrace_patched_begins:
  .cfi_startproc
  endbr64
  push_register %rax
  push_register %rdi
  flags_to_rax
  movq %rax, -64(%rsp)
  movq arctrace_gate@GOTPCREL(%rip), %rdi
  movq (%rdi), %rdi
  testb $1, (%rdi) /* ARCTRACE_GATE_FUNCTIONS */
  jz 3f
  .cfi_remember_state
  .irp name, %rsi, %rdx, %rcx, %r8, %r9, %r10
  push_register \name
  .endr
  /* r11 and the flags are saved there already. */
  subq $16, %rsp
  .cfi_adjust_cfa_offset 16
  push_register %r11
  movq %r11, %rdi
  leaq 88(%rsp), %rsi
  movq 88(%rsp), %rax
  subq arctrace_patched_code(%rip), %rax
  cmpq arctrace_patched_code_size(%rip), %rax
  jae 1f
  call *arctrace_shim_stub_begin@GOTPCREL(%rip)
  testl %eax, %eax
  jz 1f
  movq (%rsp), %r11
  movq (%r11), %r11
  cmpl $1, %eax /* ARCTRACE_SHIM_BEGUN */
  jne 4f /* ARCTRACE_SHIM_LEFT_OUT */
  .cfi_remember_state
2:
  restore_registers
  jmp arctrace_patched_through
  .cfi_restore_state
1:
  movq (%rsp), %rdi
  leaq 88(%rsp), %rsi
  movq %rbp, %rdx
  call arctrace_patched_call_begins
  movq %rax, %r11
  testl %edx, %edx
  jnz 2b
4:
  restore_registers
  jmp *-80(%rsp)
  .cfi_restore_state
3: /* Functions are switched off. */
  rax_to_flags
  movq (%r11), %r11
  movq %r11, -64(%rsp)
  movq -56(%rsp), %r11
  pop_register %rdi
  pop_register %rax
  jmp *-80(%rsp)
  .cfi_endproc
  .size arctrace_patched_begins, . - arctrace_patched_begins

  .section .note.GNU-stack,"",@progbits
