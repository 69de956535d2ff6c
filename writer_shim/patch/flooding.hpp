// Switches off patched functions whose calls fill the buffer faster than the recorder can
// empty it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/shim_protocol/patch_table.hpp"

namespace arctrace::shim {

// To be called once. `functions` are ascending; `gates` are their gates, 0 for those that
// are not patched. Both stay.
void watch_flooding(const PatchedFunction* functions, uint64_t* gates, uint32_t count);

// Looks at the records from `begin` to `end`, of a block that is full. Of the calls of
// patched functions among them, half or more are to be of functions that are off when
// this returns: switches off those that are called most. Functions that were asked for by
// name stay on. Writes their addresses to `switched_off`, and returns their number.
// Switching one off is a store, so that its cost is that of two jumps from then on.
uint32_t switch_off_flooding(const void* begin, const void* end, uint64_t* switched_off);

}  // namespace arctrace::shim
