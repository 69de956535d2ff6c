/* The vector state that loader_calls.cpp finds and vector_state.S saves and restores. */
#ifndef ARCTRACE_WRITER_SHIM_X86_64_VECTOR_STATE_H
#define ARCTRACE_WRITER_SHIM_X86_64_VECTOR_STATE_H

/* The offsets in XSAVE's area at which its list of parts begins and ends. */
#define ARCTRACE_VECTOR_HEADER 512
#define ARCTRACE_VECTOR_HEADER_END 576

#ifndef __ASSEMBLER__

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The parts that are kept, as XSAVE numbers them, and the size of its area. */
extern __attribute__((visibility("hidden"))) uint32_t arctrace_vector_parts;
extern __attribute__((visibility("hidden"))) uint64_t arctrace_vector_bytes;

/* Returns function(first, second), and leaves the vector registers as they were.
 * REQUIRES: arctrace_vector_bytes is not 0. */
uintptr_t arctrace_keep_vectors(uintptr_t (*function)(uintptr_t, uint32_t),
                                uintptr_t first, uint32_t second);

#ifdef __cplusplus
}
#endif

#endif /* __ASSEMBLER__ */

#endif /* ARCTRACE_WRITER_SHIM_X86_64_VECTOR_STATE_H */
