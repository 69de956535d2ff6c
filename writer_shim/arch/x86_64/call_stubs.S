/* Stubs that are called in place of library functions. Each loads its entry, records the
 * call and calls the function through, so that the processor's return stack stays balanced.
 * The return address is taken out of its slot on the stack before the call and put back
 * after it, so that arguments on the stack do not move.
 *
 * While the function runs, unwinders see a frame of ours, whose return address is in the
 * thread's pending calls (src/stack/open_calls.hpp), where the address of the slot finds
 * it. */
#include <cet.h>

#include "src/hook_abi/stub_places.h"
#include "writer_shim/arch/call_stubs.h"
#include "writer_shim/arch/x86_64/saved_flags.inc"
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
  jmp arctrace_call_begun
  .set number, number + 1
  .endr
  .cfi_endproc
  .size arctrace_call_stubs, . - arctrace_call_stubs

/* The registers are as for arctrace_call_begun; nothing was recorded of the call. */
  .type begin_slowly, @function
  .p2align 4
begin_slowly:
  .cfi_startproc
  /* While functions are switched off, a call that is ready needs no further work. */
  push_register %rax
  movq arctrace_gate@GOTPCREL(%rip), %rax
  movq (%rax), %rax
  testb $1, (%rax) /* ARCTRACE_GATE_FUNCTIONS */
  jnz 2f
  cmpl $ARCTRACE_STUB_NOT_READY, ARCTRACE_STUB_READY_AT(%r11)
  je 2f
  .cfi_remember_state
  pop_register %rax
  jmp *(%r11)
  .cfi_restore_state
2:
  pop_register %rax
  push_arguments
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
  jz 1f
  movq %r11, -8(%rsp)
  leaq -8(%rsp), %r11
  jmp call_slowly
1:
  jmp *%r11
  .cfi_endproc
  .size begin_slowly, . - begin_slowly

/* The unwind rules of a frame of ours. Its CFA is the stack pointer of our caller, 8
 * above the return slot. While the called function runs, that is the CFA of its own frame
 * too, but unwinders must distinguish the two: libgcc does so by their CFAs, and gdb
 * takes the frame with the lower one for the inner one. So the CFA is 12 above the slot
 * then, below that of our caller, and a rule of its own gives the stack pointer.
 *
 * libunwind knows no such rule and takes the CFA for the stack pointer. Where it is
 * loaded, our frame is two frames: the inner one returns to the outer one, whose rule
 * sees by the stack pointer which unwinder it is for. Others need no second frame, so
 * they do not get one.
 *
 * DW_CFA_val_expression: our caller's rsp (7) is the CFA without its lower bits: const1s
 * -8, and. */
  .macro stack_pointer_rule
  .cfi_escape 0x16, 0x07, 0x03, 0x09, 0xf8, 0x1a
  .endm

/* DW_CFA_expression: the address of the return address' word (16), by so many bytes of
 * operations that begin with the CFA on their stack. */
  .macro return_address_rule size
  .cfi_escape 0x10, 0x10, \size
  .endm

/* 87 bytes of operations: they find the word among the pending calls, by the return
 * slot. */
  .macro find_return_address
  /* Turn the CFA into the slot's address, twice, because pick does not reach the lowest
   * element: const1s -8, and, lit8, minus, dup. */
  .cfi_escape 0x09, 0xf8, 0x1a, 0x38, 0x1c, 0x12
  /* The address of the first thread's pending calls: breg16 0, const2s -512, and, dup, deref,
   * plus, deref, deref. */
  .cfi_escape 0x80, 0x00, 0x0b, 0x00, 0xfe, 0x1a, 0x12, 0x06, 0x22, 0x06, 0x06
  /* stack: dup, bra search. */
  .cfi_escape 0x12, 0x28, 0x1f, 0x00
  /* Not found: then the return address is back in its slot, unless that has an address of
   * ours: drop, dup, deref, const2s -512, and, breg16 0, const2s -512, and, eq, bra lost,
   * skip end. */
  .cfi_escape 0x13, 0x12, 0x06, 0x0b, 0x00, 0xfe, 0x1a, 0x80, 0x00, 0x0b, 0x00, 0xfe, 0x1a
  .cfi_escape 0x29, 0x28, 0x03, 0x00, 0x2f, 0x2e, 0x00
  /* lost: breg16 0, const2s -512, and, plus_uconst 8, skip end. */
  .cfi_escape 0x80, 0x00, 0x0b, 0x00, 0xfe, 0x1a, 0x23, 0x08, 0x2f, 0x23, 0x00
  /* search, from behind the thread's innermost call: dup, plus_uconst 8, deref,
   * plus_uconst 24. */
  .cfi_escape 0x12, 0x23, 0x08, 0x06, 0x23, 0x18
  /* call: over, plus_uconst 64, over, eq, bra next, const1u 24, minus, dup, deref, pick 3,
   * eq, bra found, skip call. */
  .cfi_escape 0x14, 0x23, 0x40, 0x14, 0x29, 0x28, 0x0e, 0x00, 0x08, 0x18, 0x1c
  .cfi_escape 0x12, 0x06, 0x15, 0x03, 0x29, 0x28, 0x08, 0x00, 0x2f, 0xea, 0xff
  /* next: drop, deref, skip stack. */
  .cfi_escape 0x13, 0x06, 0x2f, 0xbc, 0xff
  /* found: plus_uconst 8. */
  .cfi_escape 0x23, 0x08
  .endm

/* The rules while our own code runs; rsp is the return slot. */
  .macro own_rules
  .cfi_def_cfa %rsp, 8
  stack_pointer_rule
  return_address_rule 87
  find_return_address
  .endm

/* The rules while the called function runs, until own_rules_again; rsp is 8 above the
 * slot. */
  .macro called_rules
  .cfi_remember_state
  .cfi_def_cfa %rsp, 4
  return_address_rule 104
  /* arctrace_unwinding.second_frame, if it is not 0: breg16 0, const2s -512, and, dup, deref,
   * plus, plus_uconst 8, dup, deref, bra end, drop. */
  .cfi_escape 0x80, 0x00, 0x0b, 0x00, 0xfe, 0x1a, 0x12, 0x06, 0x22, 0x23, 0x08
  .cfi_escape 0x12, 0x06, 0x28, 0x58, 0x00, 0x13
  find_return_address
  .endm

/* Calls the function with its return address in the return slot, on which rsp is. The
 * function's address is in the word at r11. */
  .macro call_word
  own_rules
  leaq 8(%rsp), %rsp
  .cfi_def_cfa_offset 0
  /* call *(%r11): the rules change within it, because unwinders look up the call's own
   * address if it was interrupted, and the one before the return address while it is in
   * progress. */
  .byte 0x41, 0xff
  called_rules
  .byte 0x13
  .endm

  .macro own_rules_again
  .cfi_restore_state
  .cfi_def_cfa %rsp, 0
  .endm

/* Records the exit of the function, which has returned with its results in registers; the
 * return to the caller follows. Other registers may have values that the function has
 * kept, on which callers with conventions other than C's (ms_abi, preserve_most) rely:
 * only the flags change. */
  .macro record_end
  movq %rax, -16(%rsp) /* ARCTRACE_SHIM_RETURNED_RESULT */
  leaq -24(%rsp), %rsp
  .cfi_def_cfa_offset 24
  notrack call *arctrace_shim_call_returned@GOTPCREL(%rip)
  /* From here on the return address is back in its slot. */
  .cfi_restore %rsp
  .cfi_offset %rip, -8
  leaq 16(%rsp), %rsp
  .cfi_adjust_cfa_offset -16
  .endm

  .macro expect_at place, from, distance
  .if \place - \from != \distance
  .error "a place that the writer knows has moved"
  .endif
  .endm

  .macro quarter_end begin
  .if . - \begin > 128
  .error "a quarter of the block is too long"
  .endif
  .endm

/* The head of an aligned block that holds all code that has these rules, so that they find
 * the head from whatever address in the block a function returns to. */
  .type frames_block, @object
  .p2align 9
frames_block:
  .quad arctrace_unwinding - frames_block
  .quad 0 /* a return address that ends an unwinder's walk */

/* The hook of arctrace_call_begun returns to the first of these places if the filter leaves
 * the call out, and to the second if nothing was recorded. */
  .type begun_slowly, @function
begun_slowly:
  .cfi_startproc
  .cfi_def_cfa_offset 16
  nop /* so that the address before the next instruction has the same rules */
.Lleft_out:
  .cfi_remember_state
  pop_register %r11
  jmp *(%r11)
  .cfi_restore_state
  nop
.Lbegun_slowly:
  pop_register %r11
  .byte 0xe9 /* jmp begin_slowly, whose length is known */
  .long begin_slowly - . - 4
  .cfi_endproc
  .size begun_slowly, . - begun_slowly

/* On entry, the address of the call's entry is in r11, the return address on the stack,
 * arguments are in the other registers. The hook keeps all of them. */
  .globl arctrace_call_begun
  .hidden arctrace_call_begun
  .type arctrace_call_begun, @function
arctrace_call_begun:
  .cfi_startproc
  push_register %r11
  notrack call *arctrace_shim_call_entered@GOTPCREL(%rip)
.Lbegun:
  pop_register %r11
  .cfi_endproc
  .size arctrace_call_begun, . - arctrace_call_begun
  expect_at .Lbegun, .Lbegun_slowly, ARCTRACE_SHIM_NOT_BEGUN_BEFORE
  expect_at .Lbegun, .Lleft_out, ARCTRACE_SHIM_LEFT_OUT_BEFORE

/* On entry, r11 has the address of the word with the function's address, with which an
 * entry begins. When the function has returned to us, the processor expects a return to
 * the caller next. The hook makes that return: it is jumped to, and puts the return
 * address where its own stands. */
  .type call_through, @function
call_through:
  .cfi_startproc
  call_word
  .globl arctrace_call_returns
  .hidden arctrace_call_returns
arctrace_call_returns:
  own_rules_again
  leaq -8(%rsp), %rsp
  .cfi_def_cfa_offset 8
  notrack jmp *arctrace_shim_call_ends@GOTPCREL(%rip)
  .cfi_def_cfa_offset 0
  nop
  /* That hook returns here instead if nothing was recorded, with all registers as they
   * were. A call balances the returns again. */
.Lends_slowly:
  call 1f
1:
  .cfi_def_cfa_offset 8
  leaq 8(%rsp), %rsp
  .cfi_def_cfa_offset 0
  .byte 0xeb /* jmp .Lreturned_slowly, whose length is known */
  .byte .Lreturned_slowly - . - 1
  .cfi_endproc
  .size call_through, . - call_through
  expect_at .Lends_slowly, frames_block, ARCTRACE_SHIM_ENDS_SLOWLY_AT

/* As call_through, for a call that did not begin on the fast path, and most likely does
 * not end there. */
  .type call_slowly, @function
call_slowly:
  .cfi_startproc
  call_word
  .globl arctrace_slow_call_returns
  .hidden arctrace_slow_call_returns
arctrace_slow_call_returns:
  own_rules_again
.Lreturned_slowly:
  record_end
  ret
  .cfi_endproc
  .size call_slowly, . - call_slowly
  quarter_end frames_block

/* This is for functions whose return address was exchanged instead of calling them
 * through: their own return took the caller's entry off the processor's return stack, and
 * a second return would take the entries of all outer callers. */
  .type exchanged, @function
  .p2align 7
exchanged:
  .cfi_startproc
  own_rules
  called_rules
  ud2 /* so that the address before the next instruction is in this function too */
  .globl arctrace_exchanged_returns
  .hidden arctrace_exchanged_returns
arctrace_exchanged_returns:
  own_rules_again
  record_end
  popq %r11
  .cfi_def_cfa_offset 0
  .cfi_register %rip, %r11
  jmp *%r11
  .cfi_endproc
  .size exchanged, . - exchanged
  quarter_end exchanged

/* The outer one of our two frames, for unwinders only. Its CFA, a DW_CFA_def_cfa_expression,
 * is 6 above the stack pointer, between those of the inner one and of our caller, or for
 * libunwind, which takes the inner one's CFA for the stack pointer, 4 below: breg7 0, dup,
 * lit4, and, bra libunwind, plus_uconst 6, skip end, libunwind: lit4, minus. */
  .type second_frame, @function
  .p2align 7
second_frame:
  .cfi_startproc
  own_rules
  .cfi_escape 0x0f, 15, 0x77, 0x00, 0x12, 0x34, 0x1a, 0x28, 0x05, 0x00
  .cfi_escape 0x23, 0x06, 0x2f, 0x02, 0x00, 0x34, 0x1c
  ud2
  .globl arctrace_second_frame
  .hidden arctrace_second_frame
arctrace_second_frame:
  .cfi_endproc
  .size second_frame, . - second_frame
  quarter_end second_frame

/* This is for patched functions (patched_calls.S), which return to callers that rely on
 * all registers but those that the function itself changes. On entry, the target is 80
 * below the return slot. */
  .globl arctrace_patched_through
  .hidden arctrace_patched_through
  .type arctrace_patched_through, @function
  .p2align 7
arctrace_patched_through:
  .cfi_startproc
  own_rules
  leaq 8(%rsp), %rsp
  .cfi_def_cfa_offset 0
  /* call *-88(%rsp), within which the rules change, as above. */
  .byte 0xff
  called_rules
  .byte 0x54, 0x24, 0xa8
  .globl arctrace_patched_call_returns
  .hidden arctrace_patched_call_returns
arctrace_patched_call_returns:
  own_rules_again
  leaq -8(%rsp), %rsp
  .cfi_def_cfa_offset 8
  push_register %rax
  flags_to_rax
  push_register %rax
  notrack call *arctrace_shim_call_returned@GOTPCREL(%rip)
  .cfi_restore %rsp
  .cfi_offset %rip, -8
  pop_register %rax
  rax_to_flags
  pop_register %rax
  ret
  .cfi_endproc
  .size arctrace_patched_through, . - arctrace_patched_through
  quarter_end arctrace_patched_through

  .section .note.GNU-stack,"",@progbits
