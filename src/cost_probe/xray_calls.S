/* Functions as clang makes them with -fxray-instrument: NOP areas at the entry and at the
 * exit, and a section that says where these are. */

  /* An entry of the map. `kind`: 0 an entry, 1 an exit. */
  .macro map_sled sled, function, kind
  .pushsection xray_instr_map,"a",@progbits
9:
  .quad \sled - 9b
  .quad \function - (9b + 8)
  .byte \kind
  .byte 0 /* whether it is always instrumented */
  .byte 2 /* version */
  .zero 13
  .popsection
  .endm

  .macro begin_function name
  .globl \name
  .type \name, @function
  .p2align 4
\name:
  .cfi_startproc
  map_sled \name, \name, 0
  .byte 0xeb, 9
  .byte 0x66, 0x0f, 0x1f, 0x84, 0, 0, 2, 0, 0 /* nopw 512(%rax,%rax) */
  .endm

  .macro end_function name
  .p2align 1, 0x90
8:
  map_sled 8b, \name, 1
  ret
  .byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 2, 0, 0 /* nopw %cs:512(%rax,%rax) */
  .cfi_endproc
  .size \name, . - \name
  .endm

  .text
  begin_function arctrace_cost_probe_hooked
  end_function arctrace_cost_probe_hooked

  begin_function main
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call arctrace_cost_probe_calls
  xorl %eax, %eax
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  end_function main

  .section .note.GNU-stack,"",@progbits
