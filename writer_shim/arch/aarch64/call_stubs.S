/* Stubs that are called in place of library functions. Each loads its number, records the
 * call and calls the function through, so that the processor's return stack stays
 * balanced. The stack pointer is then what it was, so that arguments on the stack do not
 * move.
 *
 * The return address comes in x30. Its slot is the word below the caller's stack pointer:
 * the stub keeps it there while the stub runs, and the called function may overwrite that
 * word. The slot only has to differ from those of all other open calls. While the
 * function runs, unwinders see a frame of ours, whose return address is in the thread's
 * pending calls (src/stack/open_calls.hpp), where the address of the slot finds it.
 *
 * x16 and x17 are free between a call and its function, and BTI lets an indirect jump
 * through them begin a function. */
#include "writer_shim/arch/aarch64/branch_targets.inc"
#include "writer_shim/arch/call_stubs.h"

  .text
  .globl arctrace_call_stubs
  .hidden arctrace_call_stubs
  .type arctrace_call_stubs, %function
  .p2align ARCTRACE_STUB_SHIFT
arctrace_call_stubs:
  .cfi_startproc
  .set number, 0
  .rept ARCTRACE_STUB_COUNT
  .p2align ARCTRACE_STUB_SHIFT
  hint #34 /* bti c */
  mov w16, #number
  b call_begins
  .set number, number + 1
  .endr
  .cfi_endproc
  .size arctrace_call_stubs, . - arctrace_call_stubs

/* On entry, the stub's number is in w16, arguments are in the other registers. x8 is the
 * address of a large result, x9 or x15 may be a static chain (x18, an older one, is never
 * touched). */
  .type call_begins, %function
  .p2align 4
call_begins:
  .cfi_startproc
  stp x0, x1, [sp, #-112]!
  .cfi_def_cfa_offset 112
  stp x2, x3, [sp, #16]
  stp x4, x5, [sp, #32]
  stp x6, x7, [sp, #48]
  stp x8, x9, [sp, #64]
  str x15, [sp, #80]
  stp x29, x30, [sp, #96]
  .cfi_rel_offset x29, 96
  .cfi_rel_offset x30, 104
  adrp x0, arctrace_library_calls
  add x0, x0, :lo12:arctrace_library_calls
  add x0, x0, x16, lsl #ARCTRACE_STUB_ENTRY_SHIFT
  add x1, sp, #104
  mov x2, x29
  add x29, sp, #96 /* a frame record, for profilers that follow them */
  bl arctrace_call_begins
  mov x17, x0
  mov x16, x1
  ldp x2, x3, [sp, #16]
  ldp x4, x5, [sp, #32]
  ldp x6, x7, [sp, #48]
  ldp x8, x9, [sp, #64]
  ldr x15, [sp, #80]
  ldp x29, x30, [sp, #96]
  .cfi_restore x29
  .cfi_restore x30
  ldp x0, x1, [sp], #112
  .cfi_def_cfa_offset 0
  cbnz x16, call_through
  br x17
  .cfi_endproc
  .size call_begins, . - call_begins

/* All code of this path is in one aligned block, so that the unwind rule finds its head from
 * whatever address in the block a function returns to. */
  .type call_through_block, %object
  .p2align 7
call_through_block:
  .xword arctrace_unwinding - call_through_block
  .xword 0 /* a return address that ends an unwinder's walk */
  .ascii "arctrace"

  .type call_through, %function
call_through:
  .cfi_startproc
  adr x30, arctrace_call_returns /* by which the rules below find the head */
  /* CFA: 8 above the caller's stack pointer. Debuggers compare CFAs to find the inner one
   * of two frames: the CFA of our callee is that pointer, that of our caller at least 16
   * above. */
  .cfi_def_cfa_offset 8
  /* DW_CFA_val_expression: our caller's sp (31) is the CFA - 8: lit8, minus. */
  .cfi_escape 0x16, 0x1f, 0x02, 0x38, 0x1c
  /* DW_CFA_expression: 113 bytes of operations find the word of the return address (30).
   * They begin with the CFA on their stack and make it the return slot, twice, because pick
   * does not reach the lowest element: lit16, minus, dup. */
  .cfi_escape 0x10, 0x1e, 113, 0x40, 0x1c, 0x12
  /* The block's head, by x30, which our callee may have signed: breg30 0, const8u
   * 0xffffffffff80, and. */
  .cfi_escape 0x8e, 0x00, 0x0e, 0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x1a
  /* LLVM's unwinder does not follow x30, but has pc (32), which others have not. Whether it
   * is a head: dup, plus_uconst 16, deref, const8u "arctrace", eq, bra known. */
  .cfi_escape 0x12, 0x23, 0x10, 0x06
  .cfi_escape 0x0e, 0x61, 0x72, 0x63, 0x74, 0x72, 0x61, 0x63, 0x65
  .cfi_escape 0x29, 0x28, 0x07, 0x00
  /* drop, bregx 32 0, const1s -128, and. */
  .cfi_escape 0x13, 0x92, 0x20, 0x00, 0x09, 0x80, 0x1a
  /* known: the address of the first thread's pending calls: dup, dup, deref, plus, deref,
   * deref. */
  .cfi_escape 0x12, 0x12, 0x06, 0x22, 0x06, 0x06
  /* stack: dup, bra search. */
  .cfi_escape 0x12, 0x28, 0x1d, 0x00
  /* Not found: then the return address is back in its slot, unless that has an address of
   * ours: drop, swap, dup, deref, const8u 0xffffffffff80, and, pick 2, eq, bra lost, skip
   * end. */
  .cfi_escape 0x13, 0x16, 0x12, 0x06
  .cfi_escape 0x0e, 0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x1a
  .cfi_escape 0x15, 0x02, 0x29, 0x28, 0x03, 0x00, 0x2f, 0x29, 0x00
  /* lost: drop, plus_uconst 8, skip end. */
  .cfi_escape 0x13, 0x23, 0x08, 0x2f, 0x23, 0x00
  /* search, from behind the thread's innermost call: dup, plus_uconst 8, deref,
   * plus_uconst 24. */
  .cfi_escape 0x12, 0x23, 0x08, 0x06, 0x23, 0x18
  /* call: over, plus_uconst 64, over, eq, bra next, const1u 24, minus, dup, deref, pick 4,
   * eq, bra found, skip call. */
  .cfi_escape 0x14, 0x23, 0x40, 0x14, 0x29, 0x28, 0x0e, 0x00, 0x08, 0x18, 0x1c
  .cfi_escape 0x12, 0x06, 0x15, 0x04, 0x29, 0x28, 0x08, 0x00, 0x2f, 0xea, 0xff
  /* next: drop, deref, skip stack. */
  .cfi_escape 0x13, 0x06, 0x2f, 0xbe, 0xff
  /* found: plus_uconst 8. */
  .cfi_escape 0x23, 0x08
  blr x17
  .globl arctrace_call_returns
  .hidden arctrace_call_returns
arctrace_call_returns:
  /* The stack gets all registers that may have results; and in the return slot, until the
   * return address is there, an address of ours. */
  stp x0, x1, [sp, #-80]!
  .cfi_def_cfa_offset 88
  stp x2, x3, [sp, #16]
  stp x4, x5, [sp, #32]
  stp x6, x7, [sp, #48]
  str x30, [sp, #72]
  mov x1, x0
  add x0, sp, #72
  adrp x16, :got:arctrace_shim_call_end
  ldr x16, [x16, #:got_lo12:arctrace_shim_call_end]
  blr x16
  /* From here on the return address is back in its slot. */
  .cfi_rel_offset x30, 72
  ldr x30, [sp, #72]
  .cfi_restore x30
  ldp x2, x3, [sp, #16]
  ldp x4, x5, [sp, #32]
  ldp x6, x7, [sp, #48]
  ldp x0, x1, [sp], #80
  .cfi_def_cfa_offset 8
  ret
  .cfi_endproc
  .size call_through, . - call_through
  .org call_through_block + 128 /* fails if the block is longer */

  .section .note.GNU-stack,"",%progbits
