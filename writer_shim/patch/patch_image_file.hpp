// Has the command make the image of the functions to be patched, in a process of its own,
// and the loader map it.
#pragma once

#include <cstdint>

#include "src/shim_protocol/patch_table.hpp"

namespace arctrace::shim {

// The image of the program, which is mapped from its file address 0 at `bias` on. Null:
// the command could not be run, was refused room, or has no functions. Reports which
// functions are left, and why there is no image; `matched`: patterns, as the table has
// them. The image stays mapped for good. Takes as long as the analysis of the program if
// it is not in the user's cache.
// REQUIRES: the process has only this thread, and was just begun. `patcher`: the
// command's path.
const PatchTable* load_patch_image(const char* patcher, uintptr_t bias,
                                   uint64_t& matched);

}  // namespace arctrace::shim
