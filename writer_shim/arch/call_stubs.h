/* The stubs to which the slots of library calls, and the jumps of functions with sleds,
 * are pointed: the declarations that the assembler of each machine (x86_64/call_stubs.S,
 * aarch64/call_stubs.S) and C++ share. */
#ifndef ARCTRACE_WRITER_SHIM_CALL_STUBS_H
#define ARCTRACE_WRITER_SHIM_CALL_STUBS_H

#define ARCTRACE_STUB_COUNT 32768
#define ARCTRACE_STUB_SHIFT 4       /* log2 of a stub's size */
#define ARCTRACE_STUB_ENTRY_SHIFT 6 /* log2 of the size of its entry in the table */
/* In the entry (x86-64): the offset of the word that says by which filter it is ready,
 * and the word's value if it is not. */
#define ARCTRACE_STUB_READY_AT 16
#define ARCTRACE_STUB_NOT_READY 0x3FFFFFFF

#ifndef __ASSEMBLER__

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

extern const unsigned char arctrace_call_stubs[];

/* The code to which the stubs jump with the address of their entry in r11; the jump needs
 * no landing pad (x86-64). */
extern const unsigned char arctrace_call_begun[];

/* The address to which a function that was called through returns. */
extern const unsigned char arctrace_call_returns[];

/* The address to which a call returns that did not begin on the fast path (x86-64). */
extern const unsigned char arctrace_slow_call_returns[];

/* The address to which a function returns whose return address was exchanged for this one
 * (x86-64). */
extern const unsigned char arctrace_exchanged_returns[];

/* The address to which patched functions return (patched_calls.h), of which all registers
 * are kept. */
extern const unsigned char arctrace_patched_call_returns[];

/* The address by which unwinders that find our second frame return to it (x86-64). */
extern const unsigned char arctrace_second_frame[];

/* Words that the unwind rules read. */
struct arctrace_unwind_words {
  const uint64_t* pending_calls; /* arctrace_shim_pending_calls() */
  uintptr_t second_frame;        /* arctrace_second_frame; 0: unwinders see one frame */
};
extern struct arctrace_unwind_words arctrace_unwinding;

/* The next step of a stub. */
struct arctrace_call_route {
  uintptr_t target;  /* the function */
  uintptr_t through; /* nonzero: it is called, and its exit recorded; 0: jumped to */
};

/* Records the entry of a call through the stub that has this entry in the table
 * (plt/call_table.hpp), whose return address is at `return_slot`. */
struct arctrace_stub_entry;
struct arctrace_call_route arctrace_call_begins(struct arctrace_stub_entry* entry,
                                                uintptr_t* return_slot,
                                                uintptr_t frame_pointer);

#ifdef __cplusplus
}

namespace arctrace::shim {

inline uintptr_t stub_address(uint32_t number) {
  return reinterpret_cast<uintptr_t>(arctrace_call_stubs) +
         (uintptr_t{number} << ARCTRACE_STUB_SHIFT);
}

inline bool is_stub(uintptr_t address) {
  return address >= stub_address(0) && address < stub_address(ARCTRACE_STUB_COUNT);
}

}  // namespace arctrace::shim
#endif

#endif /* __ASSEMBLER__ */

#endif /* ARCTRACE_WRITER_SHIM_CALL_STUBS_H */
