// Has the command make the image of a module's functions that are to be patched, in a
// process of its own, and the loader map it.
#pragma once

#include <cstdint>

#include "src/shim_protocol/patching.hpp"
#include "writer_shim/patch/module_patcher.hpp"

namespace arctrace::shim {

// Saves a copy of the variables that the command needs, because the program may change
// them later, and the entry of the options, which must stay. Only the first call does so.
// To be called before the program's code runs, or under the loader's lock.
void keep_patcher_environment(const char* options_entry);

struct LoadedImage {
  const PatchTable* table = nullptr;  // null: there are no functions to be patched
  uint32_t refusal = 0;  // why there can be none: enum arctrace_patch_verdict, or 0
  uint64_t matched = 0;  // patterns, as the table has them
};

// The image of the module at its address. Reports which functions are skipped. The image
// stays mapped for good. Takes as long as the analysis of the module if it is not in the
// user's cache. `patcher`: the command's path. To be called under the loader's lock, or
// while there are no other threads.
LoadedImage load_patch_image(const PatchedModule& module, const char* patcher);

// As load_patch_image(), for an image that the recorder has made, of `size` bytes. If
// there is no space to map it, and this is not the last attempt, nothing is reported.
LoadedImage load_offered_image(const void* bytes, uint64_t size, bool is_last);

// Whether the loader is mapping an image, whose name is not the final one.
bool is_mapping_image();

}  // namespace arctrace::shim
