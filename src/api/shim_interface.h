/* The interface of libarctrace.so for libarctrace-shim.so, beyond the public API. It is
 * not stable, because both libraries come from one build. None of these functions fails
 * visibly: without a session, or where they lack memory, they do nothing. */
#ifndef ARCTRACE_SRC_SHIM_INTERFACE_H
#define ARCTRACE_SRC_SHIM_INTERFACE_H

#include <arctrace/arctrace.h>
#include <stdbool.h>

#include "src/hook_abi/shim_types.h"

/* A function that is only called by instructions that need no landing pad: x86-64's
 * notrack, with an address from memory that is read-only by then. */
#if defined(__CET__) && (__CET__ & 1)
#define ARCTRACE_SHIM_NO_LANDING_PAD __attribute__((nocf_check))
#else
#define ARCTRACE_SHIM_NO_LANDING_PAD
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The path of the session that this process has joined; NULL if it has joined none. */
ARCTRACE_API const char* arctrace_shim_session(void);

/* The state of the session that this process has joined. Makes a system call where these
 * are permitted; else nothing is known, ARCTRACE_SHIM_GOES_ON. */
ARCTRACE_API enum arctrace_shim_session_state arctrace_shim_state_of_session(void);

/* Joins as arctrace_attach() does. Calls `before_records` before the first record can be
 * made; it returns whether there is a filter of calls. */
ARCTRACE_API int arctrace_shim_join(const char* path, bool (*before_records)(void));

/* The same for a buffer of which the recorder has handed over the descriptor `fd`, which
 * stays open. `before_records` may be NULL, in a process that has joined no session
 * before. The session's path is empty then. */
ARCTRACE_API int arctrace_shim_join_handed(int fd, bool (*before_records)(void));

/* Two steps by which a process that runs leaves its session for another one. Between them
 * the recorder sees each thread outside of the functions of both libraries. All threads
 * are stopped there when the second step begins, but may run again before it ends. Both
 * return 0, or a negative errno: -EBUSY if the session is not over, -EAGAIN if a thread
 * is in a writer call that a signal handler interrupts, -ENOMEM. Neither uses malloc or
 * locks. */
ARCTRACE_API int arctrace_shim_end_session(void);
ARCTRACE_API int arctrace_shim_forget_session(void);

/* Nonzero for the first shim in this process that calls it. The others do nothing, so
 * that a program that loads two of them is recorded once. */
ARCTRACE_API int arctrace_shim_claim(void);

/* Sets the call filter. To be called once, before the program's code runs. */
ARCTRACE_API void arctrace_shim_set_filter(const struct arctrace_shim_filter* filter);

/* Sets the trace's text of that filter (SPEC.md REC-13), of at most
 * ARCTRACE_SHIM_FILTER_TEXT_MAX bytes. To be called together with
 * arctrace_shim_set_filter(). */
ARCTRACE_API void arctrace_shim_set_filter_text(const char* text, uint32_t size);

/* Sets the function that returns the filter's flags for a frame's name
 * (arctrace_name_key()): ARCTRACE_SHIM_FILTERED_IN, ARCTRACE_SHIM_NOTRACE. It is called
 * at once for each name that exists, and later for each that is defined, and may
 * allocate. To be called with each call filter; NULL: there is no filter. */
typedef uint32_t arctrace_shim_name_flags(const char* name);
ARCTRACE_API void arctrace_shim_set_name_flags(arctrace_shim_name_flags* flags_of);

/* Like arctrace_define_name(), for a name that the program does not use itself. */
ARCTRACE_API uint32_t arctrace_shim_define_name(const char* name);

/* The address of the live filter's number (src/protocol/live_filter.hpp), in the buffer,
 * which stays mapped. The number is 0 while no live filter has been set. NULL without a
 * session. */
ARCTRACE_API const volatile uint32_t* arctrace_shim_live_filter_number(void);

/* Copies the live filter's text to `text`, which has ARCTRACE_SHIM_LIVE_FILTER_MAX bytes,
 * and its number to `generation`. Returns its size in bytes, or -1 if it is being
 * changed. */
ARCTRACE_API int64_t arctrace_shim_copy_live_filter(uint64_t* text, uint32_t* generation);

/* From now on the live filter with the number `generation` applies. What an earlier
 * filter included or excluded no longer affects the functions that are called inside.
 * `filter_in_only`: as in arctrace_shim_filter. */
ARCTRACE_API void arctrace_shim_follow_live_filter(uint32_t generation,
                                                   int filter_in_only);

/* Tells the recorder that some function has matched these of its patterns: one bit
 * each. */
ARCTRACE_API void arctrace_shim_patterns_matched(uint64_t patterns);

/* The hooks of -finstrument-functions: `function` is entered, or left, by the machine
 * frame that returns to `call_site`. The last three arguments are registers as they were
 * at the call of the hook, and the address to which the hook returns. */
typedef void arctrace_shim_function_hook(uintptr_t function, uintptr_t call_site,
                                         uintptr_t stack_pointer, uintptr_t frame_pointer,
                                         uintptr_t hook_site);

/* Record the entry and the exit of a function if that takes no more than the fast path.
 * Otherwise they record nothing and go on in the slow hooks, which must be set. */
ARCTRACE_API arctrace_shim_function_hook arctrace_shim_function_enter;
ARCTRACE_API arctrace_shim_function_hook arctrace_shim_function_exit;

/* On x86-64 functions may call these hooks directly: they read the registers
 * themselves. */
ARCTRACE_API void arctrace_shim_enter_hook(uintptr_t function, uintptr_t call_site);
ARCTRACE_API void arctrace_shim_exit_hook(uintptr_t function, uintptr_t call_site);

/* Sets the slow hooks. */
ARCTRACE_API void arctrace_shim_set_slow_hooks(arctrace_shim_function_hook* enter,
                                               arctrace_shim_function_hook* exit);

/* Records the entry of a function with a compiled-in hook, like arctrace_enter_at(), on
 * the slow path. */
ARCTRACE_API void arctrace_shim_enter(uint64_t frame_key,
                                      const struct arctrace_shim_call* call);

/* Records the entry of a library function's call with `frame_key`. Its return address is
 * in `return_slot`. `flags`: those for the filter, and ARCTRACE_SHIM_RETURNS_TO_SHIM if
 * the call is the last act of another such call. Returns nonzero if the shim is to call
 * the function itself and then arctrace_shim_call_end(), which must not be called if this
 * returned 0. */
ARCTRACE_API int arctrace_shim_call_begin(uint64_t frame_key,
                                          const uintptr_t* return_slot,
                                          uintptr_t frame_pointer, uint32_t flags);

/* As arctrace_shim_call_begin(), for a call without flags that takes the fast path.
 * Returns 0 if it did nothing. */
ARCTRACE_API int arctrace_shim_entry_begin(uint64_t frame_key,
                                           const uintptr_t* return_slot);

/* As arctrace_shim_entry_begin(), for a call through a stub, if the call is ready, and by
 * the filter that is in force. Returns ARCTRACE_SHIM_NOT_BEGUN, _BEGUN or _LEFT_OUT. The
 * stub has stored the registers that pass arguments (ARCTRACE_SHIM_STUB_ARGUMENT). */
ARCTRACE_API int arctrace_shim_stub_begin(const struct arctrace_shim_stub_call* call,
                                          const uintptr_t* return_slot);

/* As arctrace_shim_stub_begin(), for stubs of x86-64, which have stored nothing but the
 * address of the struct arctrace_shim_stub_call: at the caller's stack pointer, with the
 * return slot above it. If nothing was done, it returns to the place that is
 * ARCTRACE_SHIM_NOT_BEGUN_BEFORE bytes before its return address. Keeps all registers but
 * the flags; `first` and `second` are the call's arguments, as far as it has any. */
ARCTRACE_API void arctrace_shim_call_entered(uintptr_t first, uintptr_t second)
    ARCTRACE_SHIM_NO_LANDING_PAD;

/* The hooks of exit-hooked functions (src/api/exit_hooked_calls.cpp). The first records
 * the entry of a function, which is described by the words on the stack where it is
 * called (ARCTRACE_SHIM_ENTERED_CALL) below that of its return address; the second, that
 * its caller is about to return. Where they can do nothing on the fast path, they call
 * the slow ones, which also get the return address' slot, and the address to which the
 * return hook returns. They keep all registers. */
typedef void arctrace_shim_entry_hook(uintptr_t* return_slot);
typedef void arctrace_shim_return_hook(uintptr_t* return_slot, uintptr_t hook_site);
ARCTRACE_API void arctrace_shim_function_entry(void) ARCTRACE_SHIM_NO_LANDING_PAD;
ARCTRACE_API void arctrace_shim_function_return(void);
/* The second of these hooks, by the name by which gcc's -minstrument-return=call calls
 * it. */
ARCTRACE_API void __return__(void);

/* The slow path of the entry hook. Returns nonzero if the caller is to exchange the
 * return address for one of its stubs' instead, and to call arctrace_shim_call_end()
 * there. */
ARCTRACE_API int arctrace_shim_enter_exit_hooked(uint64_t frame_key,
                                                 const uintptr_t* return_slot,
                                                 uintptr_t frame_pointer, uint32_t flags);

/* The slow path of the return hook: leaves the frame whose return address is in
 * `return_slot`. Returns 0 if the thread has no such frame. */
ARCTRACE_API int arctrace_shim_leave_exit_hooked(const uintptr_t* return_slot);

/* Sets the slow paths of both hooks. To be called once. Until then the slow paths do
 * nothing. */
ARCTRACE_API void arctrace_shim_set_slow_returns(arctrace_shim_entry_hook* entry,
                                                 arctrace_shim_return_hook* returns);

/* Records the exit of the call whose return address was taken from `return_slot`, and
 * puts the return address back there. `result`: the integer register of the return value.
 */
ARCTRACE_API void arctrace_shim_call_end(uintptr_t* return_slot, uintptr_t result);

/* As arctrace_shim_call_end(), for the stubs of x86-64: ARCTRACE_SHIM_RETURNED_WORDS
 * above the caller's stack pointer is the return slot, and ARCTRACE_SHIM_RETURNED_RESULT
 * the result. Keeps all registers but the flags. */
ARCTRACE_API void arctrace_shim_call_returned(void) ARCTRACE_SHIM_NO_LANDING_PAD;

/* As arctrace_shim_call_returned(), for a stub that jumps here with the return slot as
 * this function's own, to which it returns. If nothing was done, it returns to the place
 * that is ARCTRACE_SHIM_ENDS_SLOWLY_AT bytes after the beginning of the stubs' block. */
ARCTRACE_API void arctrace_shim_call_ends(void) ARCTRACE_SHIM_NO_LANDING_PAD;

/* Records a library call whose return the shim does not see. If `returns` is nonzero, the
 * call's exit is recorded at once; otherwise the function never returns. */
ARCTRACE_API void arctrace_shim_entry_only_call(uint64_t frame_key,
                                                const uintptr_t* return_slot,
                                                uintptr_t frame_pointer, uint32_t flags,
                                                int returns);

/* The thread goes on, or is about to, with this stack pointer: the frames below it are
 * abandoned. */
ARCTRACE_API void arctrace_shim_abandons_below(uintptr_t stack_pointer);

/* All frames of the calling thread have ended: libc runs its last destructors. */
ARCTRACE_API void arctrace_shim_thread_unwound(void);

/* The process makes a coroutine that will run on the stack [low, high). */
ARCTRACE_API void arctrace_shim_makes_stack(uintptr_t low, uintptr_t high);

/* The thread is about to go on with this stack pointer, which may be on another stack.
 * `jumps`: by a longjmp, which seldom changes the stack. */
ARCTRACE_API void arctrace_shim_switches_stack(uintptr_t stack_pointer, int jumps);

/* Sets the table that tells which arguments and return value of a call are recorded. It
 * must stay valid; entry 0 is used by no call. To be called before any call that has
 * arguments. */
ARCTRACE_API void arctrace_shim_set_call_args(const struct arctrace_shim_call_args* all);

/* Sets the conditions that calls in that table may have: at most
 * ARCTRACE_SHIM_CONDITIONS_MAX, which stay. To be called before any call that has one. */
ARCTRACE_API void arctrace_shim_set_call_conditions(
    const struct arctrace_shim_call_condition* all, uint32_t count);

/* Like arctrace_shim_call_begin() and arctrace_shim_entry_only_call(), for a call with
 * arguments. `args`: its entry in that table; `arguments`: all integer registers that
 * pass arguments. */
ARCTRACE_API int arctrace_shim_call_begin_with_args(uint64_t frame_key,
                                                    const uintptr_t* return_slot,
                                                    uintptr_t frame_pointer,
                                                    uint32_t flags, uint32_t args,
                                                    const uintptr_t* arguments);
ARCTRACE_API void arctrace_shim_entry_only_call_with_args(
    uint64_t frame_key, const uintptr_t* return_slot, uintptr_t frame_pointer,
    uint32_t flags, int returns, uint32_t args, const uintptr_t* arguments);

/* The address of the variable that heads the list of all threads' pending calls
 * (src/stack/open_calls.hpp): for the unwind rules of the shim's stubs. An
 * address in the aligned block of 512 bytes at `block` stands in the return slot of
 * a pending call; 0 on machines where a function may keep its return address elsewhere.
 */
ARCTRACE_API const uint64_t* arctrace_shim_pending_calls(uintptr_t block);

/* Sets the function that finds a frame's callers. By it the frames that a jump has
 * abandoned are recognised at once; without it they are found later. */
ARCTRACE_API void arctrace_shim_set_unwinder(arctrace_shim_unwinder* unwinder);

/* Sets the function that finds a thread's open functions: from then on each thread begins
 * with those that `find` finds. To be called when the process joins a session as it runs,
 * before anything is recorded. */
ARCTRACE_API void arctrace_shim_set_open_frames(arctrace_shim_open_frames* find);

/* Has the thread begin with its open functions, if it has not yet. To be called before
 * the exit of a function that the thread may have begun before the process joined.
 * `call`: that of the hook at the exit, with the frame's CFA. */
ARCTRACE_API void arctrace_shim_before_exit(const struct arctrace_shim_call* call);

/* Records that the innermost open frame is left, if it belongs to `frame_key` and was
 * entered at the same stack pointer, and returns 1. Otherwise it records nothing and
 * returns 0. It takes the slow path. */
ARCTRACE_API int arctrace_shim_exit(uint64_t frame_key, uintptr_t stack_pointer);

/* Records that the function `frame_key` is left, whose machine frame has the CFA
 * `cfa` (0: not known). */
ARCTRACE_API void arctrace_shim_exit_at(uint64_t frame_key, uintptr_t cfa,
                                        uintptr_t stack_pointer);

/* Tells the calling thread's id, in a thread that libc has just begun. To be called
 * before arctrace_shim_thread_start(). */
ARCTRACE_API void arctrace_shim_libc_thread(uint32_t tid);

/* The calling thread is about to fork. Returns the session's clock; 0 without a session.
 */
ARCTRACE_API uint64_t arctrace_shim_before_fork(void);

/* Tells the process id, which is also its thread's, in a child that libc has just forked,
 * and what arctrace_shim_before_fork() has returned in the parent. 0: libc does not know
 * of the child. Returns 1 if the child is going to record that it leaves the library call
 * that forked it, and what the tracer does there is to be told (as below); else 0. */
ARCTRACE_API int arctrace_shim_forked(uint32_t pid, uint64_t forked_ticks);

/* Whether what the tracer does in the calling thread should have a frame, by which its
 * system calls are known as its own: system calls are recorded, and so is the thread. */
ARCTRACE_API int arctrace_shim_tells_own_work(void);

/* The calling thread begins. It takes its writer slot now rather than in a hook. Its
 * stack is [stack_low, stack_high); both are 0 if that is not known. */
ARCTRACE_API void arctrace_shim_thread_start(uintptr_t stack_low, uintptr_t stack_high);

/* As arctrace_shim_libc_thread() and arctrace_shim_thread_start(), in a thread that libc
 * has just begun, before its routine. While the kernel's records have system calls, it
 * records from when to when it made its own. */
ARCTRACE_API void arctrace_shim_new_thread(uint32_t tid, uintptr_t stack_low,
                                           uintptr_t stack_high);

/* The calling thread is about to create another one. */
ARCTRACE_API void arctrace_shim_before_thread(void);

/* The calling thread's signal handlers may run on the stack [low, high), or if both are
 * 0, on its own stack. */
ARCTRACE_API void arctrace_shim_signal_stack(uintptr_t low, uintptr_t high);

/* The loader's list of modules has changed (called with the loader's lock or without). */
ARCTRACE_API void arctrace_shim_modules_changed(void);

/* Thread `tid` of this process is now called `name`. */
ARCTRACE_API void arctrace_shim_other_thread_name(uint32_t tid, const char* name);

/* Sets a function that each thread calls when it records something for the first time in
 * a session. It must not call the functions of this file. */
ARCTRACE_API void arctrace_shim_set_thread_attached(void (*attached)(void));

/* The calling thread has left all its frames and is about to end. To be called again if
 * it may have recorded something after that. */
ARCTRACE_API void arctrace_shim_thread_end(void);

/* The process is about to end by a call of its own. `how`: enum arctrace_process_end;
 * `status`: its exit status, or -1. Also called before an exec, and after one that
 * failed. */
ARCTRACE_API void arctrace_shim_process_end(uint32_t how, int32_t status);

/* The process enters a phase of its lifetime (enum arctrace_phase_of_life). */
ARCTRACE_API void arctrace_shim_process_phase(uint32_t phase);

/* The shim begins to start, in a constructor, and has started: the time in between is
 * recorded as the tracer's. */
ARCTRACE_API void arctrace_shim_start_begins(void);
ARCTRACE_API void arctrace_shim_started(void);

/* The process has made the child `pid`, which is none of the program's: reports leave it
 * out, with all that it starts. */
ARCTRACE_API void arctrace_shim_helper(uint32_t pid);

/* The session's clock; 0 without a session. */
ARCTRACE_API uint64_t arctrace_shim_now(void);

/* Process `pid`, or the calling one if that is 0, executes a program: now if `ticks` is
 * 0, else between `ticks` and now. */
ARCTRACE_API void arctrace_shim_exec(uint32_t pid, uint64_t ticks);

/* Nonzero if `list` is NULL, or if it and its strings can be read up to the NULL that
 * ends it. */
ARCTRACE_API int arctrace_shim_can_read(char* const* list);

/* The process, or its vfork child, is about to execute the file. If that can't be traced,
 * records so and returns the reason (enum arctrace_untraced); otherwise returns 0. */
ARCTRACE_API uint32_t arctrace_shim_executes(const struct arctrace_shim_program* program);

/* Records that this process' program can't be traced, and why (enum arctrace_untraced),
 * and ends recording in this process as arctrace_detach() does. */
ARCTRACE_API void arctrace_shim_leave(uint32_t why);

/* Records that so many functions of the program were patched, or skipped for one reason
 * (enum arctrace_patch_verdict), with the addresses of `listed` of them. Fork children do
 * not record it again. */
ARCTRACE_API void arctrace_shim_patches(uint32_t verdict, uint32_t count,
                                        const uint64_t* functions, uint32_t listed);

/* Functions of the module at the address of this one, which is among them, are hooked in
 * a way (enum arctrace_hook_kind) whose cost differs from that of other compiled-in
 * hooks. The first kind of a module counts. To be called under the loader's lock, when
 * the module is defined. */
ARCTRACE_API void arctrace_shim_hooked(uint32_t kind, uintptr_t function);

/* Sets the function that examines full blocks. To be called once, before the process has
 * other threads. */
ARCTRACE_API void arctrace_shim_set_full_block_hook(arctrace_shim_full_block* hook);

/* Writes the memory that is mapped for this library, beside the library itself, to
 * `ranges`, at most `max` of them. Returns their number. What a program's threads will
 * need is mapped before. */
ARCTRACE_API uint32_t arctrace_shim_own_memory(struct arctrace_shim_memory* ranges,
                                               uint32_t max);

/* The calling thread is about to make a task that has neither memory nor thread-local
 * storage of its own, while the thread goes on. */
ARCTRACE_API void arctrace_shim_shares_storage(void);

/* Calls run(data) on a stack with enough space for a slow path
 * (src/calls/stack_switch.hpp). */
ARCTRACE_API void arctrace_shim_with_stack_space(void (*run)(void* data), void* data);

/* Whether the calling task uses the thread-local storage of a thread that goes on
 * (nonzero if it does), so that it must not take locks that ask who holds them. One
 * system call if the storage is shared. */
ARCTRACE_API int arctrace_shim_is_borrower(void);

/* To be called in the parent around vfork: before the call, and after it has returned
 * there. */
ARCTRACE_API void arctrace_shim_vfork_begin(void);
ARCTRACE_API void arctrace_shim_vfork_end(uint32_t child_pid);

/* Tells which uses of the kernel by arctrace a seccomp filter (NULL: strict seccomp)
 * would forbid: bits of enum KernelUse (src/os/kernel_use.hpp). */
struct sock_fprog;
ARCTRACE_API uint32_t arctrace_shim_forbidden_by(const struct sock_fprog* filter);

/* From now on arctrace does without these uses. No thread joins any more, except those
 * that libc begins and processes that it forks, if what they need is allowed. The calling
 * thread joins first. */
ARCTRACE_API void arctrace_shim_forbid(uint32_t uses);

/* Takes back one arctrace_shim_forbid(): the kernel refused the filter. */
ARCTRACE_API void arctrace_shim_take_back_forbidden(uint32_t uses);

/* From now on arctrace must not read the CPU's time-stamp counter, which strict seccomp
 * forbids as well. */
ARCTRACE_API void arctrace_shim_no_counter(void);

#ifdef __cplusplus
}
#endif

#endif /* ARCTRACE_SRC_SHIM_INTERFACE_H */
