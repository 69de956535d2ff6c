// Switches patched functions off whose calls fill the buffer faster than the recorder can
// empty it.
#pragma once

#include <cstdint>

#include "src/shim_protocol/patching.hpp"

namespace arctrace::shim {

// Watches the functions of an image, which stays mapped. A gate is the address of the
// function's copy while it is off. To be called under the loader's lock, again when the
// module was loaded again after stop_watching().
void watch_call_rates(const PatchTable& image);

// To be called when the module is gone: other functions may be at its addresses.
void stop_watching(const PatchTable& image);

// Examines the records from `begin` to `end`, of a block that is full, for calls of
// patched functions that were not asked for by name. Switches the functions off that are
// called most, until half or more of these calls are of functions that are off, or those
// that are on have fewer than an eighth of all calls. Writes their addresses to
// `switched_off` and returns their number; if that is ARCTRACE_SHIM_SWITCHED_OFF_MAX,
// there may be more, and this is to be called again. A call of a function that is off
// costs two jumps more than one that was never patched. Calls that are open are recorded
// to their ends. Takes a binary search for each call in the block and each patched module
// at whose addresses it may be, and for each function that it switches off, a pass over
// the tables of all. REQUIRES: no other thread is in it.
uint32_t throttle_functions(void* begin, const void* end, uint32_t head_size,
                            uint64_t* switched_off);

}  // namespace arctrace::shim
