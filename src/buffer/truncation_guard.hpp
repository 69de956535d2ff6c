// Survives that another process cuts off the file of a mapped buffer. An access after the
// file's end raises SIGBUS, and whoever may write to a buffer that is shared with a group
// can shorten it. The mapping becomes private zeros then: its gate is closed.
#pragma once

#include <cstddef>

namespace arctrace {

// Guards the mapping from now on, and installs a handler of SIGBUS that hands on what is
// not about a guarded mapping. `on_cut`: called by that handler once the mapping is
// replaced; may be null. False: there is no room for another mapping, or no handler can
// be installed.
bool guard_against_truncation(std::byte* base, size_t size, void (*on_cut)());

// The mapping is about to be removed. Returns whether it was replaced meanwhile.
bool end_truncation_guard(const std::byte* base);

// Whether the mapping that begins at `base` is guarded and was replaced.
bool is_cut_off(const std::byte* base);

}  // namespace arctrace
