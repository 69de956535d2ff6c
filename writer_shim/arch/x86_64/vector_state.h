/* Calling code that may use the vector registers where they may hold arguments. */
#ifndef ARCTRACE_WRITER_SHIM_X86_64_VECTOR_STATE_H
#define ARCTRACE_WRITER_SHIM_X86_64_VECTOR_STATE_H

/* Where what XSAVE stores begins its list of parts, and where that ends. */
#define ARCTRACE_VECTOR_HEADER 512
#define ARCTRACE_VECTOR_HEADER_END 576

#ifndef __ASSEMBLER__

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* XSAVE's parts that are kept, and the bytes that they take. */
extern __attribute__((visibility("hidden"))) uint32_t arctrace_vector_parts;
extern __attribute__((visibility("hidden"))) uint64_t arctrace_vector_bytes;

/* function(first, second), behind which the vector registers are as before. REQUIRES:
 * arctrace_vector_bytes is not 0. */
uintptr_t arctrace_keep_vectors(uintptr_t (*function)(uintptr_t, uint32_t),
                                uintptr_t first, uint32_t second);

#ifdef __cplusplus
}
#endif

#endif /* __ASSEMBLER__ */

#endif /* ARCTRACE_WRITER_SHIM_X86_64_VECTOR_STATE_H */
