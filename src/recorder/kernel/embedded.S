// Embeds the compiled BPF programs into the recorder; kernel_writer.cpp loads them.
	.section .rodata
	.balign 8
	.globl arctrace_kernel_writer_begin
	.globl arctrace_kernel_writer_end
arctrace_kernel_writer_begin:
	.incbin ARCTRACE_BPF_OBJECT
arctrace_kernel_writer_end:
	.byte 0
	.section .note.GNU-stack,"",%progbits
