/* The code to which the jumps at the entries of patched functions lead, by way of the
 * image that the command made (src/recorder/patch_image/patch_image.hpp): the
 * declarations that the assembler (x86_64/patched_calls.S) and C++ share. */
#ifndef ARCTRACE_WRITER_SHIM_PATCHED_CALLS_H
#define ARCTRACE_WRITER_SHIM_PATCHED_CALLS_H

#include <stdint.h>

#include "writer_shim/arch/call_stubs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* On entry, the entry of the call (plt/call_table.hpp) is in r11, the former value of r11
 * in the ninth word below the return address. Calls the entry's target through, or jumps
 * to it, with all registers and arithmetic flags as they were. */
extern const unsigned char arctrace_patched_begins[];

/* The code of the program whose functions are patched. For calls from elsewhere the
 * caller is examined. */
extern uint64_t arctrace_patched_code;
extern uint64_t arctrace_patched_code_size;

/* As arctrace_call_begins(), for a patched function. */
struct arctrace_call_route arctrace_patched_call_begins(struct arctrace_stub_entry* entry,
                                                        uintptr_t* return_slot,
                                                        uintptr_t frame_pointer);

#ifdef __cplusplus
}
#endif

#endif /* ARCTRACE_WRITER_SHIM_PATCHED_CALLS_H */
