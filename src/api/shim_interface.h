/* What libarctrace-shim.so needs of libarctrace.so beyond the public API. Both come from
 * one build: not a stable interface. */
#ifndef ARCTRACE_SRC_SHIM_INTERFACE_H
#define ARCTRACE_SRC_SHIM_INTERFACE_H

#include <arctrace/arctrace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The file of the session that this process has joined, NULL if none. */
ARCTRACE_API const char* arctrace_shim_session(void);

/* Nonzero for the first shim in this process that asks: the one to be in charge. */
ARCTRACE_API int arctrace_shim_claim(void);

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
  ARCTRACE_SHIM_CHOSEN = 16,
  ARCTRACE_SHIM_LEFT_OUT = 32,
  ARCTRACE_SHIM_HIDDEN = 64
};

/* Which calls are recorded; by default all. */
struct arctrace_shim_filter {
  uint32_t only_chosen; /* nonzero: none but CHOSEN functions, and what they call */
  uint32_t depth_max;   /* only so many within one another, from each CHOSEN; 0: any */
  uint64_t min_ns;      /* only those that last so long; 0: any */
};
/* To be called before the program's code runs, in a process that has joined. */
ARCTRACE_API void arctrace_shim_set_filter(const struct arctrace_shim_filter* filter);

/* The number of what was chosen while the session runs (src/protocol/live_filter.hpp), in
 * the buffer, which stays mapped: 0 if there was nothing. NULL without a session. */
ARCTRACE_API const volatile uint32_t* arctrace_shim_choice_round(void);

/* Copies that choice to `text`, of ARCTRACE_SHIM_CHOICE_MAX bytes: its size, or -1 if it
 * is being changed. `round`: its number. */
#define ARCTRACE_SHIM_CHOICE_MAX 1024
ARCTRACE_API int64_t arctrace_shim_copy_choice(uint64_t* text, uint32_t* round);

/* From now on the filter follows that choice: what was chosen or left out by another one
 * holds no longer in what is called. `only_chosen`: as in arctrace_shim_filter. */
ARCTRACE_API void arctrace_shim_choose(uint32_t round, int only_chosen);

/* Which of the recorder's patterns, one bit each, some function has matched. */
ARCTRACE_API void arctrace_shim_patterns_matched(uint64_t patterns);

/* Like arctrace_enter_at. */
ARCTRACE_API void arctrace_shim_enter(uint64_t frame_key,
                                      const struct arctrace_shim_call* call);

/* A call of a library function, whose return address stands at `place`; `flags`: those
 * for the filter, and ARCTRACE_SHIM_RETURNS_TO_SHIM, where it is the last act of another
 * such call.
 * Its entry is recorded with `frame_key`. Nonzero: the shim is to call the function
 * itself, and when it has returned, to ask arctrace_shim_call_end() where to go on; it
 * must not be called if this was 0. */
ARCTRACE_API int arctrace_shim_call_begin(uint64_t frame_key, const uintptr_t* place,
                                          uintptr_t frame_pointer, uint32_t flags);

/* What a call returned whose return address stood at `place`: records the exit and puts
 * the return address back there. `result`: its integer register. */
ARCTRACE_API void arctrace_shim_call_end(uintptr_t* place, uintptr_t result);

/* The entry of a library call that is not followed: one that does not return, or if
 * `returns` is nonzero, not through us. Then its exit is recorded at once. */
ARCTRACE_API void arctrace_shim_call_passed(uint64_t frame_key, const uintptr_t* place,
                                            uintptr_t frame_pointer, uint32_t flags,
                                            int returns);

/* A value of a call that is recorded: an argument that is passed in an integer register,
 * or the result that is returned in one; of kind FLOAT: in a vector register, by whose
 * number arguments are counted. */
struct arctrace_shim_value {
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
#define ARCTRACE_SHIM_TOLD_MAX 8     /* arguments of a call that are recorded */
#define ARCTRACE_SHIM_VALUES_MAX 512 /* of arctrace_shim_set_values */
struct arctrace_shim_values {
  uint32_t argument_count;
  struct arctrace_shim_value arguments[ARCTRACE_SHIM_TOLD_MAX];
  struct arctrace_shim_value result;
  uint32_t names;        /* name id of the arguments' names; 0: none */
  uint32_t result_names; /* of the result's enumerators */
};
/* Where all of them stand, for good; the first is none's. To be called before there is a
 * call that has one. */
ARCTRACE_API void arctrace_shim_set_values(const struct arctrace_shim_values* all);

/* Of a call whose values are number `values` of those; `arguments`: all that are passed
 * in integer registers. Like arctrace_shim_call_begin, and like
 * arctrace_shim_call_passed.
 */
ARCTRACE_API int arctrace_shim_call_begin_with(uint64_t frame_key, const uintptr_t* place,
                                               uintptr_t frame_pointer, uint32_t flags,
                                               uint32_t values,
                                               const uintptr_t* arguments);
ARCTRACE_API void arctrace_shim_call_passed_with(uint64_t frame_key,
                                                 const uintptr_t* place,
                                                 uintptr_t frame_pointer, uint32_t flags,
                                                 int returns, uint32_t values,
                                                 const uintptr_t* arguments);

/* Where the address of the first thread's pending calls stands
 * (src/stack/pending_calls.hpp): for the unwind rules of the shim's stubs. */
ARCTRACE_API const uint64_t* arctrace_shim_pending_calls(void);

/* Turns the description of a machine frame (call_site and flags aside) into its caller's:
 * 1, or 0 if that is not known. Reads the stack only up to `stack_high`. */
typedef int arctrace_shim_unwinder(struct arctrace_shim_call* frame,
                                   uintptr_t stack_high);
ARCTRACE_API void arctrace_shim_set_unwinder(arctrace_shim_unwinder* unwinder);

/* The innermost open frame is left, if it is frame_key's and was entered at the same
 * stack pointer: 1. Else 0, and nothing is recorded. */
ARCTRACE_API int arctrace_shim_exit(uint64_t frame_key, uintptr_t stack_pointer);

/* frame_key, whose machine frame is at `location` (0: not known), is left. */
ARCTRACE_API void arctrace_shim_exit_at(uint64_t frame_key, uintptr_t location,
                                        uintptr_t stack_pointer);

/* The calling thread, just begun by libc, has this id. Before the next. */
ARCTRACE_API void arctrace_shim_libc_thread(uint32_t tid);

/* The calling process was forked by libc: its number, and that of its thread. */
ARCTRACE_API void arctrace_shim_forked(uint32_t pid);

/* The calling thread begins: takes its slot now rather than in a hook. Its stack is
 * [stack_low, stack_high); both 0 if that is not known. */
ARCTRACE_API void arctrace_shim_thread_start(uintptr_t stack_low, uintptr_t stack_high);

/* The calling thread is about to create another one. */
ARCTRACE_API void arctrace_shim_before_thread(void);

/* The calling thread's signal handlers may run on [low, high); both 0: on its own stack.
 */
ARCTRACE_API void arctrace_shim_signal_stack(uintptr_t low, uintptr_t high);

/* The loader's list of modules has changed (called with the loader's lock or without). */
ARCTRACE_API void arctrace_shim_modules_changed(void);

/* Thread `tid` of this process is now called `name`. */
ARCTRACE_API void arctrace_shim_other_thread_name(uint32_t tid, const char* name);

/* The process ends by its own will: enum arctrace_process_end, and its status or -1.
 * Before an exec, and behind it if it failed. */
ARCTRACE_API void arctrace_shim_process_end(uint32_t how, int32_t status);

/* Whether the strings of a list that a null ends can be read, or it is null itself. */
ARCTRACE_API int arctrace_shim_can_read(char* const* list);

/* A program's file as one of the exec functions names it. */
struct arctrace_shim_program {
  int folder;       /* that `path` is relative to; the file itself, if path is "" */
  const char* path; /* null: nothing is to be found */
  int is_looked_up; /* in PATH, unless it has a slash */
};

/* The process, or its vfork child, is about to execute the file: if that can't be traced,
 * says so in the session and returns why (enum arctrace_untraced), else 0. */
ARCTRACE_API uint32_t arctrace_shim_executes(const struct arctrace_shim_program* program);

/* Around vfork in the parent: before the call, and when it has returned there. */
ARCTRACE_API void arctrace_shim_vfork_begin(void);
ARCTRACE_API void arctrace_shim_vfork_end(uint32_t child_pid);

/* What of ours a seccomp filter (NULL: strict seccomp) forbids, which this process is
 * about to be given: bits of enum KernelUse (src/process/confinement.hpp); 0: nothing. */
struct sock_fprog;
ARCTRACE_API uint32_t arctrace_shim_forbidden_by(const struct sock_fprog* filter);

/* From now on that is not done: nobody joins but, if that is allowed, threads that libc
 * begins and processes that it forks. The calling thread joins before. */
ARCTRACE_API void arctrace_shim_forbid(uint32_t uses);

/* Takes back one arctrace_shim_forbid(): the kernel refused the filter. */
ARCTRACE_API void arctrace_shim_take_back_forbidden(uint32_t uses);

/* It must not read the CPU's time-stamp counter any more, which strict seccomp forbids
 * too. */
ARCTRACE_API void arctrace_shim_no_counter(void);

#ifdef __cplusplus
}
#endif

#endif /* ARCTRACE_SRC_SHIM_INTERFACE_H */
