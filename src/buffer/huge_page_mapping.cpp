#include "src/buffer/huge_page_mapping.hpp"

#include <sys/mman.h>

#include "src/base/raw_syscall.hpp"

namespace arctrace {
namespace {

constexpr uint64_t kSmallPage = 4096;

bool is_error(long result) { return result < 0 && result > -4096; }

void unmap(uintptr_t from, uintptr_t to) {
  if (from < to) {
    raw_syscall(SYS_munmap, static_cast<long>(from), static_cast<long>(to - from));
  }
}

}  // namespace

std::byte* map_for_huge_pages(int fd, uint64_t size, long& error) {
  // Address space that contains a multiple of kHugePageSize with enough room after it.
  const uint64_t room_size = size + kHugePageSize;
  const long room = raw_syscall(SYS_mmap, 0, static_cast<long>(room_size), PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (is_error(room)) {
    error = room;
    return nullptr;
  }
  const auto low = static_cast<uintptr_t>(room);
  const uintptr_t high = low + (room_size + kSmallPage - 1) / kSmallPage * kSmallPage;
  const uintptr_t base = (low + kHugePageSize - 1) / kHugePageSize * kHugePageSize;
  const long mapped =
      raw_syscall(SYS_mmap, static_cast<long>(base), static_cast<long>(size),
                  PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
  if (is_error(mapped)) {
    unmap(low, high);
    error = mapped;
    return nullptr;
  }
  unmap(low, base);
  unmap(base + (size + kSmallPage - 1) / kSmallPage * kSmallPage, high);
  return reinterpret_cast<std::byte*>(base);
}

}  // namespace arctrace
