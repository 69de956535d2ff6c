/* The stubs that take the place of library functions, by machine (x86_64/call_stubs.S).
 */
#ifndef ARCTRACE_WRITER_SHIM_CALL_STUBS_H
#define ARCTRACE_WRITER_SHIM_CALL_STUBS_H

#define ARCTRACE_STUB_COUNT 32768
#define ARCTRACE_STUB_SHIFT 4 /* log2 of a stub's size */

#ifndef __ASSEMBLER__

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

extern const unsigned char arctrace_call_stubs[];

/* Where a function that was called through returns to. */
extern const unsigned char arctrace_call_returns[];

/* The same, where its return address was exchanged for this one (x86-64). */
extern const unsigned char arctrace_exchanged_returns[];

/* arctrace_shim_pending_calls(), for the unwind rules. */
extern const uint64_t* arctrace_pending_calls;

/* How the call of stub `number` goes on. */
struct arctrace_call_route {
  uintptr_t target;  /* the function */
  uintptr_t through; /* nonzero: it is called, and its end recorded; 0: jumped to */
};
struct arctrace_call_route arctrace_call_begins(uint32_t number, uintptr_t* place,
                                                uintptr_t frame_pointer);

#ifdef __cplusplus
}
#endif

#endif /* __ASSEMBLER__ */

#endif /* ARCTRACE_WRITER_SHIM_CALL_STUBS_H */
