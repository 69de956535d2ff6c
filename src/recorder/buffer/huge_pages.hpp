// Allocates a buffer's memory in huge pages, which takes a tenth of the time that small
// pages take. Buffer::create() calls it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arctrace {

// Allocates huge pages for an empty file in shared memory that map_for_huge_pages() has
// mapped at `base`, except for the part of a huge page at its end. Returns 0, or the
// errno because of which some or all of it has no huge pages; the caller then allocates
// small ones.
int allocate_huge_pages(int fd, std::byte* base, uint64_t size);

}  // namespace arctrace
