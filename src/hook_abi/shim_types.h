/* The structs and constants that the shim's hooks and the writer exchange
 * (src/api/shim_interface.h). Both come from one build, so this is not a stable
 * interface. */
#ifndef ARCTRACE_SRC_HOOK_ABI_SHIM_TYPES_H
#define ARCTRACE_SRC_HOOK_ABI_SHIM_TYPES_H

#include <stdint.h>

/* A call of a function-entry hook, and the machine frame of the function that called the
 * hook, as far as the hook knows it. Functions that are inlined into one another share
 * one machine frame. For a library call it is the machine frame that the called function
 * is about to make. */
struct arctrace_shim_call {
  uintptr_t cfa; /* CFA (canonical frame address): stack pointer before the call */
  uintptr_t stack_pointer; /* at the call of the hook, as the next two */
  uintptr_t frame_pointer;
  uintptr_t hook_site; /* the address to which the hook returns */
  uintptr_t call_site; /* the address to which the machine frame returns */
  uint32_t flags;      /* enum arctrace_shim_call_flags */
};
enum arctrace_shim_call_flags {
  /* The machine frame belongs to the function that is entered, which is not inlined. */
  ARCTRACE_SHIM_BEGINS_FRAME = 1,
  /* location is an address between stack_pointer and the CFA. */
  ARCTRACE_SHIM_CFA_GUESSED = 2,
  /* A library call, through one of the shim's stubs. */
  ARCTRACE_SHIM_LIBRARY_CALL = 4,
  /* The machine frame returns into the shim, where a library call is pending. */
  ARCTRACE_SHIM_RETURNS_TO_SHIM = 8,
  /* For the filter, in this order: this function and what it calls are filtered in; they
   * are notrace; the function alone is not recorded. */
  ARCTRACE_SHIM_FILTERED_IN = 16,
  ARCTRACE_SHIM_NOTRACE = 32,
  ARCTRACE_SHIM_HIDDEN = 64,
  /* For the shim: the function is entry-only, because it returns twice or reads its
   * caller's address. */
  ARCTRACE_SHIM_ENTRY_ONLY = 512,
  /* Whenever the hook is called from this site, cfa is as far from stack_pointer, or
   * from frame_pointer, as now. */
  ARCTRACE_SHIM_CFA_BY_SP = 128,
  ARCTRACE_SHIM_CFA_BY_FP = 256,
  /* The function calls a hook right before each of its returns, so that its return
   * address stays where it is. */
  ARCTRACE_SHIM_EXIT_HOOKED = 1024,
  /* The function was found open by unwinding, and no hook saw it begin. */
  ARCTRACE_SHIM_WAS_OPEN = 2048,
  /* While the frame's return address stands, it is this function that runs there: the
   * instruction before that address calls the function, and can call no other one. */
  ARCTRACE_SHIM_CALLED_BY_NAME = 4096
};

/* A call through one of the shim's stubs of which only entry and exit are recorded. */
struct arctrace_shim_stub_call {
  uint64_t target; /* the function's address */
  uint64_t key;    /* of its frames */
  /* The live filter's number for which the call is recorded in this way, or if the entry
   * has locks, ARCTRACE_SHIM_READY_WITH_LOCKS; ARCTRACE_SHIM_NOT_READY: the shim has to
   * examine the call first. */
  uint32_t ready_at;
  /* The function's flags of enum arctrace_shim_call_flags by the filter, and for the
   * shim: by that of the command line. */
  uint16_t filter;
  uint16_t filter_at_start;
};

/* The live filter's numbers are less than that, unless another process has overwritten
 * the number: then calls may be recorded that are not ready, or without locks. */
#define ARCTRACE_SHIM_NOT_READY 0x3FFFFFFFu

/* The ready_at of a call of which the first `locks` arguments, one or two, are addresses
 * of locks. `number`: the live filter's. */
#define ARCTRACE_SHIM_READY_WITH_LOCKS(number, locks) \
  (((uint32_t)(number)&ARCTRACE_SHIM_NOT_READY) | (uint32_t)(locks) << 30)
#define ARCTRACE_SHIM_HAS_LOCKS(ready_at) ((ready_at) > ARCTRACE_SHIM_NOT_READY)

/* What arctrace_shim_stub_begin() has done. Left out: the filter leaves the call out, and
 * the function is to be jumped to. The assembler of the stubs knows these numbers. */
#define ARCTRACE_SHIM_NOT_BEGUN 0
#define ARCTRACE_SHIM_BEGUN 1
#define ARCTRACE_SHIM_LEFT_OUT 2

/* The index, from the return slot, of the word in which a stub stores integer argument
 * `i`, from 0. On x86-64 rdi, rsi, rdx, rcx, r8, r9 are below rax; on aarch64 x0 is at
 * the lower end of a frame of 14 words. */
#if defined(__x86_64__)
#define ARCTRACE_SHIM_STUB_ARGUMENT(i) (-2 - (i))
#else
#define ARCTRACE_SHIM_STUB_ARGUMENT(i) (-13 + (i))
#endif

/* The indices, from the return address, of the words that the stub of an exit-hooked
 * function stores below it. The first is the caller's frame pointer, the second the
 * address of a struct arctrace_shim_stub_call. */
#define ARCTRACE_SHIM_ENTERED_FRAME_POINTER (-1)
#define ARCTRACE_SHIM_ENTERED_CALL (-2)

/* The number of words that a stub of x86-64 has below the return slot of a call that has
 * returned, and the index, from the return slot, of the word that holds the integer
 * result. */
#define ARCTRACE_SHIM_RETURNED_WORDS 2
#define ARCTRACE_SHIM_RETURNED_RESULT (-1)

/* The filter of calls. With all zeros, all calls are recorded. */
struct arctrace_shim_filter {
  uint32_t filter_in_only; /* nonzero: only FILTERED_IN functions and what they call */
  uint32_t depth_max; /* nested calls, counted from each FILTERED_IN function; 0: any */
  uint64_t min_ns;    /* the shortest call that is recorded; 0: any */
};

#define ARCTRACE_SHIM_LIVE_FILTER_MAX 1024
#define ARCTRACE_SHIM_FILTER_TEXT_MAX 1024

/* An argument or the return value of a call that is recorded. It is in an integer
 * register, or if its kind is FLOAT, in a vector register; arguments of that kind are
 * counted apart.
 */
struct arctrace_shim_arg_spec {
  uint8_t kind;     /* enum arctrace_value_kind or ARCTRACE_SHIM_STD_STRING; 0: none */
  uint8_t argument; /* from 1; above the number of registers: stack words; 0: retval */
  uint8_t size;     /* bytes of a number */
  uint8_t failure;  /* of a return value: enum arctrace_shim_failure */
};
enum arctrace_shim_failure {
  ARCTRACE_SHIM_FAILS_NEVER = 0,
  ARCTRACE_SHIM_FAILS_MINUS_1 = 1, /* returns -1 and sets errno */
  ARCTRACE_SHIM_FAILS_NULL = 2     /* returns 0 and sets errno */
};
/* A kind: the address of a std::string of libstdc++, which is recorded as a string. */
#define ARCTRACE_SHIM_STD_STRING 255

#define ARCTRACE_SHIM_ARGUMENTS_MAX 6 /* in integer registers */
#define ARCTRACE_SHIM_VECTORS_MAX 8   /* in vector registers */
#if defined(__x86_64__)
#define ARCTRACE_SHIM_STACK_WORDS_MAX 8 /* on the stack, above the return address */
#else
#define ARCTRACE_SHIM_STACK_WORDS_MAX 0
#endif
#define ARCTRACE_SHIM_RECORDED_ARGS_MAX 8 /* recorded arguments of one call */
/* The most entries that arctrace_shim_set_call_args() takes. */
#define ARCTRACE_SHIM_CALL_ARGS_MAX 4096
/* How a condition compares: a call that fulfils one has the flight recorder take a
 * snapshot when it ends. */
enum arctrace_shim_compare {
  ARCTRACE_SHIM_LESS = 0,
  ARCTRACE_SHIM_LESS_OR_EQUAL = 1,
  ARCTRACE_SHIM_MORE = 2,
  ARCTRACE_SHIM_MORE_OR_EQUAL = 3,
  ARCTRACE_SHIM_EQUAL = 4,
  ARCTRACE_SHIM_OTHER = 5
};
struct arctrace_shim_call_condition {
  uint8_t is_result; /* 0: it is about the call's time */
  uint8_t compare;   /* enum arctrace_shim_compare: with `value` */
  uint8_t size;      /* of the return value, in bytes */
  uint8_t is_signed;
  uint32_t reserved;
  uint64_t value;   /* ns, or a number */
  const char* mark; /* text of the MARK that a call leaves which fulfils it */
};
#define ARCTRACE_SHIM_CONDITIONS_MAX 64

struct arctrace_shim_call_args {
  uint32_t argument_count;
  struct arctrace_shim_arg_spec arguments[ARCTRACE_SHIM_RECORDED_ARGS_MAX];
  struct arctrace_shim_arg_spec result;
  uint32_t names;        /* name id of the arguments' names; 0: none */
  uint32_t result_names; /* name id of the names of the return value's enumerators */
  /* The number of first arguments that are addresses of locks and stand in the record of
   * the entry; if it is not 0, argument_count is 0. */
  uint32_t locks;
  uint64_t conditions; /* bits of those that the call may fulfil */
};

/* Replaces the description of a machine frame by that of its caller's, whose call_site is
 * 0 if it is not known, and whose flags are 0. Returns 1, or 0 if there is no caller
 * known, or if its CFA is another one than `wanted`, unless that is 0. Does not use the
 * callee's call_site. Reads the stack only below `stack_high`, and of the caller's frame
 * nothing unless its CFA is `wanted`: the stack may end there. */
typedef int arctrace_shim_unwinder(struct arctrace_shim_call* frame, uintptr_t stack_high,
                                   uintptr_t wanted);

/* Memory [low, high). */
struct arctrace_shim_memory {
  uintptr_t low;
  uintptr_t high;
};

/* A function that is open, as unwinding finds it. */
struct arctrace_shim_open_frame {
  uint64_t key;  /* its address, or a name that stands for all further out */
  uintptr_t end; /* of its code */
  uintptr_t cfa; /* the CFA; 0: not known */
  uintptr_t call_site;
  uint32_t flags; /* enum arctrace_shim_call_flags, those for the filter among them */
};
typedef void arctrace_shim_see_frame(void* context,
                                     const struct arctrace_shim_open_frame* frame);

/* Unwinds the calling thread from a hook's call: calls see(context, frame) for the
 * functions that are open, innermost first, and returns how many of them count, without
 * those that lead to main or to a thread's function. `begins`: the function of `call` is
 * not visited, because it is about to begin. Sets the bounds of the thread's own stack if
 * they are not known (empty) and can be found. `signal`: the bounds of its signal stack,
 * or empty. Allocates nothing, and takes some us. */
typedef uint32_t arctrace_shim_open_frames(const struct arctrace_shim_call* call,
                                           int begins, struct arctrace_shim_memory* own,
                                           const struct arctrace_shim_memory* signal,
                                           arctrace_shim_see_frame* see, void* context);

/* Examines the records [begin, end) of a full block, whose heads have `head_size` bytes,
 * while the recorder falls behind.
 * Writes the addresses of functions that it has switched off because of them to
 * `functions`, at most ARCTRACE_SHIM_SWITCHED_OFF_MAX, and returns their number; called
 * again with the same records if there may be more. Called by one thread at a time. */
#define ARCTRACE_SHIM_SWITCHED_OFF_MAX 16
typedef uint32_t arctrace_shim_full_block(void* begin, const void* end,
                                          uint32_t head_size, uint64_t* functions);

/* A program's file as one of the exec functions names it. */
struct arctrace_shim_program {
  int directory;    /* `path` is relative to it; with the path "" it is the file itself */
  const char* path; /* null: there is no file */
  int is_looked_up; /* nonzero: in PATH, unless the path has a slash */
};

/* Whether a session that a process has joined goes on. */
enum arctrace_shim_session_state {
  ARCTRACE_SHIM_GOES_ON = 0,
  ARCTRACE_SHIM_ABANDONED = 1, /* the recorder that made the buffer has died */
  ARCTRACE_SHIM_REMOVED = 2,   /* the buffer has been removed */
};

#endif /* ARCTRACE_SRC_HOOK_ABI_SHIM_TYPES_H */
