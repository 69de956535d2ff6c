/* What libarctrace-shim.so needs of libarctrace.so beyond the public API. Both come from
 * one build: not a stable interface. */
#ifndef ARCTRACE_SRC_SHIM_INTERFACE_H
#define ARCTRACE_SRC_SHIM_INTERFACE_H

#include <arctrace/arctrace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The calling thread begins: takes its slot now rather than in a hook. Its stack is
 * [stack_low, stack_high); both 0 if that is not known. */
ARCTRACE_API void arctrace_shim_thread_start(uintptr_t stack_low, uintptr_t stack_high);

/* The loader's list of modules has changed (called with the loader's lock or without). */
ARCTRACE_API void arctrace_shim_modules_changed(void);

/* The process ends by its own will: enum arctrace_process_end, and its status or -1. */
ARCTRACE_API void arctrace_shim_process_end(uint32_t how, int32_t status);

/* Around vfork in the parent: before the call, and when it has returned there. */
ARCTRACE_API void arctrace_shim_vfork_begin(void);
ARCTRACE_API void arctrace_shim_vfork_end(uint32_t child_pid);

/* This process must make no system call of ours any more (strict seccomp). */
ARCTRACE_API void arctrace_shim_no_system_calls(void);

#ifdef __cplusplus
}
#endif

#endif /* ARCTRACE_SRC_SHIM_INTERFACE_H */
