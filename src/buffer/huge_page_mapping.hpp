// Where a buffer is mapped: at an address where the kernel can map its huge pages as
// such, so that a process faults once for 2 MiB of it and not for each 4096 bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arctrace {

constexpr uint64_t kHugePageSize = uint64_t{2} << 20;

// Maps `size` bytes of a file or BPF map, shared, to read and write. Null: `error` is the
// negative errno.
std::byte* map_for_huge_pages(int fd, uint64_t size, long& error);

}  // namespace arctrace
