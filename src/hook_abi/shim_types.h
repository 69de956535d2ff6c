/* The structs and constants that the shim's hooks and the writer exchange
 * (src/api/shim_interface.h). Both come from one build: this is not a stable interface.
 */
#ifndef ARCTRACE_SRC_HOOK_ABI_SHIM_TYPES_H
#define ARCTRACE_SRC_HOOK_ABI_SHIM_TYPES_H

#include <stdint.h>

/* The call of a function-entry hook, and what the hook knows of its caller's machine
 * frame. Functions that are inlined into one another have one machine frame.
 *
 * Of a library call: the machine frame that the called function is about to make. */
struct arctrace_shim_call {
  uintptr_t location; /* canonical frame address: its caller's stack pointer before */
  uintptr_t stack_pointer; /* at the call of the hook; so too the next two */
  uintptr_t frame_pointer;
  uintptr_t hook_site; /* what the hook returns to */
  uintptr_t call_site; /* what the machine frame returns to */
  uint32_t flags;      /* enum arctrace_shim_call_flags */
};
enum arctrace_shim_call_flags {
  /* The function that is entered has this machine frame: it is not inlined. */
  ARCTRACE_SHIM_BEGINS_FRAME = 1,
  /* location is only somewhere between stack_pointer and the canonical frame address. */
  ARCTRACE_SHIM_LOCATION_GUESSED = 2,
  /* A library call, through one of the shim's stubs. */
  ARCTRACE_SHIM_LIBRARY_CALL = 4,
  /* The machine frame returns into the shim: a library call waits for it there. */
  ARCTRACE_SHIM_RETURNS_TO_SHIM = 8,
  /* For the filter: what the user chose is this function, with what it calls; or is to be
   * left out with what it calls; or just not to be recorded. */
  ARCTRACE_SHIM_FILTERED_IN = 16,
  ARCTRACE_SHIM_NOTRACE = 32,
  ARCTRACE_SHIM_HIDDEN = 64
};

/* Which calls are recorded; by default all. */
struct arctrace_shim_filter {
  uint32_t filter_in_only; /* nonzero: none but CHOSEN functions, and what they call */
  uint32_t depth_max;      /* only so many within one another, from each CHOSEN; 0: any */
  uint64_t min_ns;         /* only those that last so long; 0: any */
};

#define ARCTRACE_SHIM_LIVE_FILTER_MAX 1024

/* A value of a call that is recorded: an argument that is passed in an integer register,
 * or the result that is returned in one; of kind FLOAT: in a vector register, by whose
 * number arguments are counted. */
struct arctrace_shim_arg_spec {
  uint8_t kind;     /* enum arctrace_value_kind, or the next; 0: none */
  uint8_t argument; /* from 1; 0: the result; beyond the registers: words of the stack */
  uint8_t size;     /* of a number, in bytes */
  uint8_t failure;  /* of a result: enum arctrace_shim_failure */
};
enum arctrace_shim_failure {
  ARCTRACE_SHIM_FAILS_NEVER = 0,
  ARCTRACE_SHIM_FAILS_MINUS_1 = 1, /* -1: errno says why */
  ARCTRACE_SHIM_FAILS_NULL = 2     /* 0: errno says why */
};
/* The address of a std::string of libstdc++, to be recorded as a string. */
#define ARCTRACE_SHIM_STD_STRING 255

#define ARCTRACE_SHIM_ARGUMENTS_MAX 6 /* in integer registers */
#define ARCTRACE_SHIM_VECTORS_MAX 8   /* in vector registers */
#if defined(__x86_64__)
#define ARCTRACE_SHIM_STACK_WORDS_MAX 8 /* on the stack, behind the return address */
#else
#define ARCTRACE_SHIM_STACK_WORDS_MAX 0
#endif
#define ARCTRACE_SHIM_RECORDED_ARGS_MAX 8 /* arguments of a call that are recorded */
#define ARCTRACE_SHIM_CALL_ARGS_MAX 4096  /* of arctrace_shim_set_call_args */
struct arctrace_shim_call_args {
  uint32_t argument_count;
  struct arctrace_shim_arg_spec arguments[ARCTRACE_SHIM_RECORDED_ARGS_MAX];
  struct arctrace_shim_arg_spec result;
  uint32_t names;        /* name id of the arguments' names; 0: none */
  uint32_t result_names; /* of the result's enumerators */
};

/* Turns the description of a machine frame (call_site and flags aside) into its caller's,
 * whose call_site is 0 if it is not known: 1, or 0 if the caller is not known. Reads the
 * stack only up to `stack_high`. */
typedef int arctrace_shim_unwinder(struct arctrace_shim_call* frame,
                                   uintptr_t stack_high);

/* A program's file as one of the exec functions names it. */
struct arctrace_shim_program {
  int directory;    /* that `path` is relative to; the file itself, if path is "" */
  const char* path; /* null: nothing is to be found */
  int is_looked_up; /* in PATH, unless it has a slash */
};

#endif /* ARCTRACE_SRC_HOOK_ABI_SHIM_TYPES_H */
