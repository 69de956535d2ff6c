// Functions that begin with room for a hook (-fpatchable-function-entry, of five bytes or
// more): the room is filled with a jump to a stub, which calls the rest of the function
// through like a library function.
#pragma once

namespace arctrace::shim {

// Fills the room in the modules that are loaded. REQUIRES: no thread runs their code.
void patch_functions();

}  // namespace arctrace::shim
