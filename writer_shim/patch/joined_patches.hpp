// Patches functions of a program that runs (record --pid -P): the recorder makes the
// images, and writes the jumps while no thread runs
// (src/shim_protocol/joined_patches.hpp). All functions are called under the loader's
// lock.
#pragma once

#include "src/shim_protocol/joined_patches.hpp"
#include "src/shim_protocol/options.hpp"

namespace arctrace::shim {

// Switches off all functions that earlier recordings have patched.
void switch_off_joined_patches();

// Lists the modules of which the options ask for functions, for the recorder. Modules
// that are loaded later are patched by the process itself. `options_entry`: the options
// as an entry of an environment. Both must stay.
void want_joined_patches(const ShimOptions& options, const char* options_entry);

// Takes an image that the recorder has made: has what it chooses recorded, as soon as its
// jumps are written, which are noted. Returns 0 or an error number: EAGAIN if it cannot
// be mapped at the addresses for which it was made, ENOENT if its module is gone.
int take_joined_patches(const OfferedPatches& offered);

// Reports what was patched, once the jumps are written, and what was left.
void report_joined_patches();

}  // namespace arctrace::shim
