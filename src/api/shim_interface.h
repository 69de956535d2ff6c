/* What libarctrace-shim.so needs of libarctrace.so beyond the public API. Both come from
 * one build: not a stable interface. */
#ifndef ARCTRACE_SRC_SHIM_INTERFACE_H
#define ARCTRACE_SRC_SHIM_INTERFACE_H

#include <arctrace/arctrace.h>

#include "src/hook_abi/shim_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The file of the session that this process has joined, NULL if none. */
ARCTRACE_API const char* arctrace_shim_session(void);

/* Nonzero for the first shim in this process that asks: the one to be in charge. */
ARCTRACE_API int arctrace_shim_claim(void);

/* To be called before the program's code runs, in a process that has joined. */
ARCTRACE_API void arctrace_shim_set_filter(const struct arctrace_shim_filter* filter);

/* The number of what was chosen while the session runs (src/protocol/live_filter.hpp), in
 * the buffer, which stays mapped: 0 if there was nothing. NULL without a session. */
ARCTRACE_API const volatile uint32_t* arctrace_shim_live_filter_number(void);

/* Copies that choice to `text`, of ARCTRACE_SHIM_LIVE_FILTER_MAX bytes: its size, or -1
 * if it is being changed. `round`: its number. */
ARCTRACE_API int64_t arctrace_shim_copy_live_filter(uint64_t* text, uint32_t* round);

/* From now on the filter follows that choice: what was chosen or left out by another one
 * holds no longer in what is called. `filter_in_only`: as in arctrace_shim_filter. */
ARCTRACE_API void arctrace_shim_follow_live_filter(uint32_t round, int filter_in_only);

/* Which of the recorder's patterns, one bit each, some function has matched. */
ARCTRACE_API void arctrace_shim_patterns_matched(uint64_t patterns);

/* Like arctrace_enter_at. */
ARCTRACE_API void arctrace_shim_enter(uint64_t frame_key,
                                      const struct arctrace_shim_call* call);

/* A call of a library function, whose return address stands in `return_slot`; `flags`:
 * those for the filter, and ARCTRACE_SHIM_RETURNS_TO_SHIM, where it is the last act of
 * another such call. Its entry is recorded with `frame_key`. Nonzero: the shim is to call
 * the function itself, and when it has returned, to ask arctrace_shim_call_end() where to
 * go on; it must not be called if this was 0. */
ARCTRACE_API int arctrace_shim_call_begin(uint64_t frame_key,
                                          const uintptr_t* return_slot,
                                          uintptr_t frame_pointer, uint32_t flags);

/* What a call returned whose return address stood in `return_slot`: records the exit and
 * puts the return address back there. `result`: its integer register. */
ARCTRACE_API void arctrace_shim_call_end(uintptr_t* return_slot, uintptr_t result);

/* The entry of a library call that is not followed: one that does not return, or if
 * `returns` is nonzero, not through us. Then its exit is recorded at once. */
ARCTRACE_API void arctrace_shim_call_passed(uint64_t frame_key,
                                            const uintptr_t* return_slot,
                                            uintptr_t frame_pointer, uint32_t flags,
                                            int returns);

/* Where all of them stand, for good; the first is none's. To be called before there is a
 * call that has one. */
ARCTRACE_API void arctrace_shim_set_call_args(const struct arctrace_shim_call_args* all);

/* Of a call whose values are number `values` of those; `arguments`: all that are passed
 * in integer registers. Like arctrace_shim_call_begin, and like
 * arctrace_shim_call_passed.
 */
ARCTRACE_API int arctrace_shim_call_begin_with_args(uint64_t frame_key,
                                                    const uintptr_t* return_slot,
                                                    uintptr_t frame_pointer,
                                                    uint32_t flags, uint32_t values,
                                                    const uintptr_t* arguments);
ARCTRACE_API void arctrace_shim_call_passed_with_args(
    uint64_t frame_key, const uintptr_t* return_slot, uintptr_t frame_pointer,
    uint32_t flags, int returns, uint32_t values, const uintptr_t* arguments);

/* Where the address of the first thread's pending calls stands
 * (src/stack/pending_calls.hpp): for the unwind rules of the shim's stubs. */
ARCTRACE_API const uint64_t* arctrace_shim_pending_calls(void);

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

/* The process, or its vfork child, is about to execute the file: if that can't be traced,
 * says so in the session and returns why (enum arctrace_untraced), else 0. */
ARCTRACE_API uint32_t arctrace_shim_executes(const struct arctrace_shim_program* program);

/* Around vfork in the parent: before the call, and when it has returned there. */
ARCTRACE_API void arctrace_shim_vfork_begin(void);
ARCTRACE_API void arctrace_shim_vfork_end(uint32_t child_pid);

/* What of ours a seccomp filter (NULL: strict seccomp) forbids, which this process is
 * about to be given: bits of enum KernelUse (src/os/kernel_use.hpp); 0: nothing. */
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
