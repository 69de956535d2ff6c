// A buffer's memory in huge pages: it is made in a tenth of the time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arctrace {

// Gives an empty file in shared memory, mapped by map_for_huge_pages(), its memory in
// huge pages, but for what is left over at its end. 0, or the error that says why all or
// some of it has none; it is then for the caller to have it allocated in small ones.
int allocate_huge_pages(int fd, std::byte* base, uint64_t size);

}  // namespace arctrace
