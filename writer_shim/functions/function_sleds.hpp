// Hooks functions that begin with room for that (-fpatchable-function-entry: five bytes
// on x86-64, one instruction on aarch64; clang's -fxray-instrument) or with a call of
// __fentry__ (-pg -mfentry, x86-64). A jump to a stub takes its place, and the stub calls
// the rest of the function through like a library function.
#pragma once

namespace arctrace::shim {

// Puts the jumps into the modules that are loaded, and were not yet seen. REQUIRES: no
// thread runs their code.
void patch_functions();

// Notes the changes (arch/code_changes.hpp) that put the jumps into all modules that are
// loaded, at functions that have none yet. Of functions that report their exits only the
// entry is changed, and calls of __fentry__ stay, which need no change.
void note_function_changes();

// Has all jumps ask the gate of the session that the process is in now. They can be in
// use.
void lead_jumps_to_gate();

// To be called when the loader's list of modules has changed. If new ones are not yet
// relocated, they will be patched.
void sled_modules_changed(bool are_unrelocated);

}  // namespace arctrace::shim
