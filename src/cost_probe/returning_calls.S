/* Functions as gcc makes them with -pg -mfentry -minstrument-return=call. They call
 * libarctrace's __return__ when the recorder runs the program with the library. Without
 * it, nothing is called. */
  .weak __return__

  .macro begin_function name
  .globl \name
  .type \name, @function
  .p2align 4
\name:
  .cfi_startproc
  call *__fentry__@GOTPCREL(%rip)
  .endm

  .macro end_function name
  call *__return__@GOTPCREL(%rip)
  ret
  .cfi_endproc
  .size \name, . - \name
  .endm

  .text
  begin_function arctrace_cost_probe_hooked
  end_function arctrace_cost_probe_hooked

  begin_function arctrace_cost_probe_main
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call arctrace_cost_probe_calls
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  end_function arctrace_cost_probe_main

  .globl main
  .type main, @function
main:
  .cfi_startproc
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  cmpq $0, __return__@GOTPCREL(%rip)
  je 1f
  call arctrace_cost_probe_main
1:
  xorl %eax, %eax
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  ret
  .cfi_endproc
  .size main, . - main

  .section .note.GNU-stack,"",@progbits
