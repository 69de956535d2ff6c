/* The hooks of -finstrument-functions, __cyg_profile_func_enter and
 * __cyg_profile_func_exit: the declarations that the assembler of each machine
 * (x86_64/function_hooks.S, aarch64/function_hooks.S) and C++ share. A hook adds its
 * caller's registers to its two arguments and jumps to the fast hook, or while that is
 * null, to the slow one. A call of the fast hook through the procedure linkage table
 * would not do, because hooks may be called before the shim is relocated. */
#ifndef ARCTRACE_WRITER_SHIM_FUNCTION_HOOKS_H
#define ARCTRACE_WRITER_SHIM_FUNCTION_HOOKS_H

#include "src/api/shim_interface.h"

extern "C" {

/* The hooks. They are called before their module is hooked, and where its slots are not
 * known: other slots lead straight to libarctrace's hooks (lead_calls()). */
void __cyg_profile_func_enter(void* function, void* call_site);
void __cyg_profile_func_exit(void* function, void* call_site);

/* Null before start_function_hooks(). */
extern __attribute__((visibility("hidden")))
arctrace_shim_function_hook* arctrace_fast_enter_hook;
extern __attribute__((visibility("hidden")))
arctrace_shim_function_hook* arctrace_fast_exit_hook;

/* The slow hooks. */
__attribute__((visibility("hidden")))
arctrace_shim_function_hook arctrace_function_entered;
__attribute__((visibility("hidden")))
arctrace_shim_function_hook arctrace_function_exited;
}

#endif /* ARCTRACE_WRITER_SHIM_FUNCTION_HOOKS_H */
