// What the command does for the shim in a program whose functions are to be patched
// (writer_shim/patch/): it analyses the program, chooses functions by the options, and
// makes the image that the shim has the loader map.
#pragma once

#include <string>
#include <vector>

namespace arctrace::recording {

// `arguments`: those after shim::kPatchVerb (src/shim_protocol/patch_table.hpp). Prints
// nothing, because the standard streams are not ours. Returns the exit status.
int make_patches(const std::vector<std::string>& arguments);

}  // namespace arctrace::recording
