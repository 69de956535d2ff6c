// Patches functions of modules that were not built for tracing (record -P): of the
// program itself, and of libraries, also of those that it loads later.
#pragma once

#include <cstdint>

#include "src/shim_protocol/joining.hpp"
#include "src/shim_protocol/options.hpp"
#include "src/shim_protocol/patching.hpp"
#include "writer_shim/elf/module_slots.hpp"
#include "writer_shim/patch/module_patcher.hpp"

namespace arctrace::shim {

// Patches the functions that the options ask for, of the modules that are loaded. Skips
// modules where that is not safe: if there are other threads, under a seccomp filter, and
// those whose functions call hooks that are compiled in. The options must stay. REQUIRES:
// the program's own constructors and main have not run. `options_entry`: the options as
// an entry of an environment, for the command.
void patch_modules(const ShimOptions& options, const char* options_entry);

// The next functions are for a program that runs, under the loader's lock.

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

// Patches modules that were loaded since, whose own code has not run. To be called under
// the loader's lock.
void patch_new_modules();

// To be called when modules were unloaded, under the loader's lock.
void forget_unloaded_patches();

// Callers of patched functions (writer_shim/arch/patched_calls.h): calls from this code,
// the shim's, are not recorded. To be called before there are any.
void know_own_code(AddressRange code);

// To be called when code was loaded or unloaded: callers may be elsewhere.
void forget_patched_callers();

// Patches functions of a program that runs (record --pid -P): the recorder makes the
// images, and writes the jumps while no thread runs
// (src/shim_protocol/joining.hpp). All functions are called under the loader's
// lock.

// Switches off all functions that earlier recordings have patched.
void switch_off_joined_patches();

// Lists the modules of which the options ask for functions, for the recorder. Modules
// that are loaded later are patched by the process itself. `options_entry`: the options
// as an entry of an environment. Both must stay.
void want_joined_patches(const ShimOptions& options, const char* options_entry);

// Takes an image that the recorder has made: has the functions that it chooses recorded,
// as soon as its jumps are written, which it notes. Returns 0 or an error number: EAGAIN
// if it cannot be mapped at the addresses for which it was made, ENOENT if its module is
// gone.
int take_joined_patches(const OfferedPatches& offered);

// Reports which functions were patched, once the jumps are written, and which were
// skipped.
void report_joined_patches();

}  // namespace arctrace::shim
