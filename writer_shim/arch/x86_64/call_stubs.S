/* Stubs that are called in place of library functions. Each loads its entry, records the
 * call and calls the function through, so that the processor's return stack stays balanced.
 * The return address is taken out of its slot on the stack before the call and put back
 * after it, so that arguments on the stack do not move.
 *
 * While the function runs, unwinders see a frame of ours, whose return address is in the
 * thread's pending calls (src/stack/pending_calls.hpp), where the address of the slot finds
 * it. */
#include <cet.h>

#include "writer_shim/arch/call_stubs.h"
#include "writer_shim/arch/x86_64/saved_registers.inc"

  .text
  .globl arctrace_call_stubs
  .hidden arctrace_call_stubs
  .type arctrace_call_stubs, @function
  .p2align ARCTRACE_STUB_SHIFT
arctrace_call_stubs:
  .cfi_startproc
  .set number, 0
  .rept ARCTRACE_STUB_COUNT
  .p2align ARCTRACE_STUB_SHIFT
  endbr64
  leaq (arctrace_library_calls + (number << ARCTRACE_STUB_ENTRY_SHIFT))(%rip), %r11
  jmp call_begins
  .set number, number + 1
  .endr
  .cfi_endproc
  .size arctrace_call_stubs, . - arctrace_call_stubs

/* In: the address of the stub's entry in r11, the return address on the stack, arguments in
 * the other registers. */
  .type call_begins, @function
  .p2align 4
call_begins:
  .cfi_startproc
  push_arguments
  leaq 64(%rsp), %rsi
  push_register %r11
  movq %r11, %rdi
  call *arctrace_shim_stub_begin@GOTPCREL(%rip)
  pop_register %r11
  testl %eax, %eax
  jz 1f
  .cfi_remember_state
  movq (%r11), %r11
  pop_arguments
  jmp call_through
  .cfi_restore_state
1:
  movq %r11, %rdi
  leaq 64(%rsp), %rsi
  movq %rbp, %rdx
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call arctrace_call_begins
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  movq %rax, %r11
  testl %edx, %edx
  pop_arguments
  jnz call_through
  jmp *%r11
  .cfi_endproc
  .size call_begins, . - call_begins

/* The unwind rules of a frame of ours, while rsp is 12 below its CFA. */
  .macro frame_rules
  /* CFA: 12 above the return slot. Debuggers find out by it which of two frames is the inner
   * one: the CFA of our callee is 8 above the slot, that of our caller at least 16. */
  .cfi_def_cfa %rsp, 12
  /* DW_CFA_val_expression: our caller's rsp (7) is the CFA - 4: lit4, minus. */
  .cfi_escape 0x16, 0x07, 0x02, 0x34, 0x1c
  /* DW_CFA_expression: 85 bytes of operations find the word of the return address (16). They
   * begin with the CFA on their stack and make it the return slot, twice, because pick does
   * not reach the lowest element: lit12, minus, dup. */
  .cfi_escape 0x10, 0x10, 85, 0x3c, 0x1c, 0x12
  /* The address of the first thread's pending calls: breg16 0, const1s -128, and, dup, deref,
   * plus, deref, deref. */
  .cfi_escape 0x80, 0x00, 0x09, 0x80, 0x1a, 0x12, 0x06, 0x22, 0x06, 0x06
  /* stack: dup, bra search. */
  .cfi_escape 0x12, 0x28, 0x1c, 0x00
  /* Not found: then it is back in its slot, unless that holds an address of ours: drop, dup,
   * deref, const1s -128, and, breg16 0, const1s -128, and, eq, bra lost, skip end. */
  .cfi_escape 0x13, 0x12, 0x06, 0x09, 0x80, 0x1a, 0x80, 0x00, 0x09, 0x80, 0x1a, 0x29
  .cfi_escape 0x28, 0x03, 0x00, 0x2f, 0x32, 0x00
  /* lost: breg16 0, const1s -128, and, plus_uconst 8, skip end. */
  .cfi_escape 0x80, 0x00, 0x09, 0x80, 0x1a, 0x23, 0x08, 0x2f, 0x28, 0x00
  /* search, from the end of the thread's calls: dup, plus_uconst 8, deref, const1u 24, mul,
   * over, plus, plus_uconst 64. */
  .cfi_escape 0x12, 0x23, 0x08, 0x06, 0x08, 0x18, 0x1e, 0x14, 0x22, 0x23, 0x40
  /* call: over, plus_uconst 64, over, eq, bra next, const1u 24, minus, dup, deref, pick 3,
   * eq, bra found, skip call. */
  .cfi_escape 0x14, 0x23, 0x40, 0x14, 0x29, 0x28, 0x0e, 0x00, 0x08, 0x18, 0x1c
  .cfi_escape 0x12, 0x06, 0x15, 0x03, 0x29, 0x28, 0x08, 0x00, 0x2f, 0xea, 0xff
  /* next: drop, deref, skip stack. */
  .cfi_escape 0x13, 0x06, 0x2f, 0xba, 0xff
  /* found: plus_uconst 8. */
  .cfi_escape 0x23, 0x08
  .endm

/* Records the exit of the function, which has returned with its results in registers; the
 * return to the caller follows. Other registers may hold values that the function has kept,
 * which callers of conventions other than C's (ms_abi, preserve_most) count on. */
  .macro record_end
  subq $8, %rsp
  .cfi_def_cfa_offset 12
  push_arguments
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  leaq 72(%rsp), %rdi
  movq %rax, %rsi
  call *arctrace_shim_call_end@GOTPCREL(%rip)
  /* From here on the return address is back in its slot: lit12, minus. */
  .cfi_escape 0x10, 0x10, 0x02, 0x3c, 0x1c
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  pop_arguments
  .endm

/* The head of an aligned block that holds all code of one path, so that the unwind rules
 * find the head from whatever address in the block a function returns to. */
  .macro block_head name
  .type \name, @object
  .p2align 7
\name:
  .quad arctrace_pending_calls - \name
  .quad 0 /* a return address that ends an unwinder's walk */
  .endm

  .macro block_end name
  .if . - \name > 128
  .error "the block is too long"
  .endif
  .endm

  block_head call_through_block
  .type call_through, @function
call_through:
  .cfi_startproc
  frame_rules
  leaq 8(%rsp), %rsp
  .cfi_def_cfa_offset 4
  call *%r11
  .globl arctrace_call_returns
  .hidden arctrace_call_returns
arctrace_call_returns:
  record_end
  ret
  .cfi_endproc
  .size call_through, . - call_through
  block_end call_through_block

/* For functions whose return address was exchanged instead of calling them through: their
 * own return took the caller's entry off the processor's return stack, and a second return
 * would take the entries of all outer callers. */
  block_head exchanged_block
  .type exchanged, @function
exchanged:
  .cfi_startproc
  frame_rules
  .cfi_def_cfa_offset 4
  ud2 /* so that the address before the next instruction is in this function too */
  .globl arctrace_exchanged_returns
  .hidden arctrace_exchanged_returns
arctrace_exchanged_returns:
  record_end
  popq %r11
  .cfi_def_cfa_offset 4
  .cfi_register %rip, %r11
  jmp *%r11
  .cfi_endproc
  .size exchanged, . - exchanged
  block_end exchanged_block

  .section .note.GNU-stack,"",@progbits
