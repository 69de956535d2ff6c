// A buffer that is the value of a BPF map, by the path where the map is pinned. Opening
// such a path as a file fails with EIO.
#pragma once

#include <cstdint>

namespace arctrace {

// A descriptor of the map, to be mapped shared, and the value's size in bytes. Negative
// errno if there is no such map or it may not be used. It can't be read but by mapping.
int open_pinned_map(const char* path, uint64_t& size);

// Whether `path` is in a BPF file system.
bool is_pinned_map(const char* path);

}  // namespace arctrace
