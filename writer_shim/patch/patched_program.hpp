// Patches functions of the program itself, which was not built for that (record -P): a
// jump takes the place of their first instructions, a copy of which runs after their
// entry was recorded. The command has found out which can be patched, and made the copies
// (src/shim_protocol/patch_table.hpp).
#pragma once

#include "src/shim_protocol/options.hpp"

namespace arctrace::shim {

// Patches the functions that the options ask for. Does nothing where that is not safe: if
// there are other threads, under a seccomp filter, in a program whose functions call
// hooks that are compiled in, and to functions whose instructions are not as in the
// program's file. REQUIRES: the program's own constructors and main have not run.
void patch_program(const ShimOptions& options);

}  // namespace arctrace::shim
