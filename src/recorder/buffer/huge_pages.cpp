#include "src/recorder/buffer/huge_pages.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>

#include <cerrno>

#include "src/buffer/huge_page_mapping.hpp"

#if !defined(MADV_COLLAPSE)
#define MADV_COLLAPSE 25  // Linux 6.1
#endif

namespace arctrace {

int allocate_huge_pages(int fd, std::byte* base, uint64_t size) {
  constexpr off_t kSmallPage = 4096;
  const uint64_t whole = size / kHugePageSize * kHugePageSize;
  if (whole == 0) return 0;
  // Checked first, so that a file system that is too small is not filled up in vain.
  struct statvfs room {};
  if (fstatvfs(fd, &room) != 0) return errno;
  const bool has_limit = room.f_blocks != 0;  // a tmpfs without one has no blocks
  if (has_limit && size / room.f_frsize >= room.f_bavail) return ENOSPC;
  // MADV_COLLAPSE skips huge pages without any allocated memory, and copies what it
  // finds: so one small page of each is allocated. Touching it instead would raise SIGBUS
  // where there is no memory.
  for (uint64_t at = 0; at < whole; at += kHugePageSize) {
    const int error = posix_fallocate(fd, static_cast<off_t>(at), kSmallPage);
    if (error != 0) return error;
  }
  return madvise(base, whole, MADV_COLLAPSE) == 0 ? 0 : errno;
}

}  // namespace arctrace
