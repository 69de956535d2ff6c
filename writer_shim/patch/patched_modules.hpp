// Patches functions of modules that were not built for tracing (record -P): of the
// program itself, and of libraries, also of those that it loads later.
#pragma once

#include <cstdint>

#include "src/shim_protocol/options.hpp"
#include "src/shim_protocol/patch_table.hpp"
#include "writer_shim/patch/module_patcher.hpp"

namespace arctrace::shim {

// Patches the functions that the options ask for, of the modules that are loaded. Leaves
// modules alone where that is not safe: if there are other threads, under a seccomp
// filter, and those whose functions call hooks that are compiled in. The options must
// stay. REQUIRES: the program's own constructors and main have not run.
// `options_entry`: the same as an entry of an environment, for the command.
void patch_modules(const ShimOptions& options, const char* options_entry);

// What follows is for a program that runs (joined_patches.hpp), under the loader's lock.

// Takes these options, perhaps in place of others. Modules that are loaded from then on
// are patched by them. Calls visit(module) for each module that is loaded and of which
// they ask for functions, unless that is not safe, which is reported.
void note_joined_modules(const ShimOptions& options, const char* options_entry,
                         void (*visit)(const PatchedModule&));

// A module that was noted, if it is still loaded, by its lowest address; else null.
const PatchedModule* find_joined_module(uintptr_t low);

// Notes an image that was made for the module. False: it is not for it, or there are too
// many.
bool note_patch_image(const PatchedModule& module, const PatchTable& table);

// Calls visit(module, table) for each image of a module that is loaded.
void for_each_patch_image(void (*visit)(const PatchedModule&, const PatchTable&));

// The same for modules that were loaded since, whose own code has not run. To be called
// under the loader's lock.
void patch_new_modules();

// To be called when modules were unloaded, under the loader's lock.
void forget_unloaded_patches();

}  // namespace arctrace::shim
