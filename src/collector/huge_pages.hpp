// Shared memory in huge pages: a process then faults once for 2 MiB of it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arctrace {

// Maps `size` bytes of a file, to read and write, at an address where the kernel can map
// its huge pages as such. Null: errno says why not.
std::byte* map_for_huge_pages(int fd, uint64_t size);

// Gives an empty file in shared memory, mapped by map_for_huge_pages(), its memory in
// huge pages, but for what is left over at its end. 0, or the error that says why all or
// some of it has none; it is then for the caller to have it allocated in small ones.
int allocate_huge_pages(int fd, std::byte* base, uint64_t size);

}  // namespace arctrace
