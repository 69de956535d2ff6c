// Maps a buffer at an address at which the kernel can map its huge pages as such, so that
// a process faults once for 2 MiB and not once for 4096 bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arctrace {

constexpr uint64_t kHugePageSize = uint64_t{2} << 20;

// Maps `size` bytes of a file or BPF map, shared, for reading and writing. On failure
// returns null and sets `error` to the negative errno.
std::byte* map_for_huge_pages(int fd, uint64_t size, long& error);

}  // namespace arctrace
