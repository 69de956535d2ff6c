// Has the command make the image of a module's functions that are to be patched, in a
// process of its own, and the loader map it.
#pragma once

#include <cstdint>

#include "src/shim_protocol/patch_table.hpp"
#include "writer_shim/patch/module_patcher.hpp"

namespace arctrace::shim {

// Keeps a copy of what the command needs of the environment, which the program may change
// later, the first time that it is called, and the entry of the options, which must stay.
// To be called before the program's code runs, or under the loader's lock.
void keep_patcher_environment(const char* options_entry);

struct LoadedImage {
  const PatchTable* table = nullptr;  // null: there are no functions to be patched
  uint32_t refusal = 0;  // why there can be none: enum arctrace_patch_verdict, or 0
  uint64_t matched = 0;  // patterns, as the table has them
};

// The image of the module, where it is loaded. Reports which functions are left. The
// image stays mapped for good. Takes as long as the analysis of the module if it is not
// in the user's cache. `patcher`: the command's path. To be called under the loader's
// lock, or while there are no other threads.
LoadedImage load_patch_image(const PatchedModule& module, const char* patcher);

// The same of an image that the recorder has made, of `size` bytes. If it cannot be
// mapped for want of room, and is not the last try, nothing is reported.
LoadedImage load_offered_image(const void* bytes, uint64_t size, bool is_last);

// Whether the loader is mapping an image, whose name is not the one that it will have.
bool is_mapping_image();

}  // namespace arctrace::shim
