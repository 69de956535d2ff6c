// Opens a buffer that is the value of a BPF map, by the path at which the map is pinned.
// Opening such a path as a file fails with EIO.
#pragma once

#include <cstdint>

namespace arctrace {

// Returns a descriptor of the map, to be mapped shared, and sets `size` to the value's
// size in bytes. A negative errno if there is no such map or it may not be used.
int open_pinned_map(const char* path, uint64_t& size);

// Whether `path` is in a BPF file system.
bool is_pinned_map(const char* path);

}  // namespace arctrace
