// Hooks functions that begin with room for that (-fpatchable-function-entry: five bytes
// on x86-64, one instruction on aarch64; clang's -fxray-instrument) or with a call of
// __fentry__ (-pg -mfentry, x86-64). A jump to a stub takes its place, and the stub calls
// the rest of the function through like a library function.
#pragma once

namespace arctrace::shim {

// Puts the jumps into the modules that are loaded, and were not yet seen. REQUIRES: no
// thread runs their code.
void patch_functions();

// To be called when the loader's list of modules has changed. If new ones are not yet
// relocated, they will be patched.
void sled_modules_changed(bool are_unrelocated);

}  // namespace arctrace::shim
