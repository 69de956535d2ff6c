/* The places in writer_shim/arch/x86_64/call_stubs.S to which the hooks of x86-64's stubs
 * return if they could do nothing on the fast path, so that stubs need not check the
 * result. That file checks the places. */
#ifndef ARCTRACE_HOOK_ABI_STUB_PLACES_H
#define ARCTRACE_HOOK_ABI_STUB_PLACES_H

/* For arctrace_shim_call_entered(): the number of bytes before its return address, and of
 * the place that jumps to the function, of whose call nothing is recorded. */
#define ARCTRACE_SHIM_NOT_BEGUN_BEFORE 16
#define ARCTRACE_SHIM_LEFT_OUT_BEFORE 22

/* For arctrace_shim_call_ends(): the number of bytes after the beginning of the stubs'
 * block (arctrace_shim_pending_calls()). */
#define ARCTRACE_SHIM_ENDS_SLOWLY_AT 62

#endif /* ARCTRACE_HOOK_ABI_STUB_PLACES_H */
