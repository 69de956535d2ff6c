// The hooks that compilers put into functions: how each kind of them begins, and how they
// learn of code that was loaded or unloaded.
#pragma once

#include <cstdint>

#include "src/api/shim_interface.h"
#include "src/hook_abi/shim_types.h"
#include "writer_shim/base/stack_space.hpp"
#include "writer_shim/filter/function_filter.hpp"

namespace arctrace::shim {

// The hooks that functions compiled with -finstrument-functions (gcc and clang) call at
// their entry and exit (writer_shim/arch/function_hooks.h). This lets them take the fast
// path, unless the program has hooks of its own, which come after ours in the search
// order and are still called. To be called once, after the shim has been relocated.
void start_function_hooks();

// The hooks that functions compiled with -pg and -mfentry call at their entry (mcount,
// __fentry__). The function's return address is exchanged for ours, to which a library
// call that is called through returns too, and its exit is recorded when it returns
// there. forget_entry_hooks() is to be called when code was loaded or unloaded: functions
// may begin elsewhere.
void forget_entry_hooks();

// The slow path of the hooks of exit-hooked functions (src/api/exit_hooked_calls.cpp):
// those with XRay's sleds, and those that gcc compiled with -mfentry and
// -minstrument-return=call.

// Whether the exits of this function may be seen by its own hook. With arguments or a
// return value to record, it is called through.
inline bool may_report_exit(const KnownFunction& function) {
  return function.arg_specs == 0 &&
         (function.flags_at_start & ARCTRACE_SHIM_ENTRY_ONLY) == 0;
}

// To be called once, after the shim has been relocated.
void start_exit_hooked_calls();

// To be called when code was loaded or unloaded: functions may begin elsewhere.
void forget_unrecorded_returns();

// Hooks functions that begin with a NOP area (-fpatchable-function-entry: five bytes on
// x86-64, one instruction on aarch64; clang's -fxray-instrument) or with a call of
// __fentry__ (-pg -mfentry, x86-64). A jump to a stub takes its place, and the stub calls
// the rest of the function through like a library function.

// Writes the jumps into the modules that are loaded, and were not patched yet. REQUIRES:
// no thread runs their code.
void patch_functions();

// Reports the functions whose sleds were written over since then, as the kernel does for
// a uprobe: calls of these are not recorded. To be called when the process ends.
void report_overwritten_sleds();

// Notes the changes (arch/code_changes.hpp) that put the jumps into all modules that are
// loaded, at functions that have none yet. In exit-hooked functions only the entry is
// changed, and calls of __fentry__ stay, which need no change.
void note_function_changes();

// Has all jumps test the gate of the session that the process is in now. They can be in
// use.
void lead_jumps_to_gate();

// To be called when the loader's list of modules has changed. If new ones are not yet
// relocated, they will be patched.
void sled_modules_changed(bool are_unrelocated);

}  // namespace arctrace::shim
