#include "src/collector/huge_pages.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>

#include <cerrno>

#if !defined(MADV_COLLAPSE)
#define MADV_COLLAPSE 25  // Linux 6.1
#endif

namespace arctrace {
namespace {

constexpr uint64_t kHugePage = uint64_t{2} << 20;
constexpr off_t kSmallPage = 4096;

}  // namespace

std::byte* map_for_huge_pages(int fd, uint64_t size) {
  // Room in which there is a multiple of kHugePage.
  const uint64_t room_size = size + kHugePage;
  void* room = mmap(nullptr, room_size, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  auto* const first = static_cast<std::byte*>(room);
  const uint64_t before = -reinterpret_cast<uintptr_t>(room) % kHugePage;
  void* base =
      mmap(first + before, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
  if (base == MAP_FAILED) {
    const int error = errno;
    munmap(room, room_size);
    errno = error;
    return nullptr;
  }
  const uint64_t end = before + (size + kSmallPage - 1) / kSmallPage * kSmallPage;
  if (before > 0) munmap(room, before);
  if (end < room_size) munmap(first + end, room_size - end);
  return static_cast<std::byte*>(base);
}

int allocate_huge_pages(int fd, std::byte* base, uint64_t size) {
  const uint64_t whole = size / kHugePage * kHugePage;
  if (whole == 0) return 0;
  // Before it is filled up in vain.
  struct statvfs room {};
  if (fstatvfs(fd, &room) != 0) return errno;
  const bool has_limit = room.f_blocks != 0;  // a tmpfs without one has no blocks
  if (has_limit && size / room.f_frsize >= room.f_bavail) return ENOSPC;
  // Only what is there is gathered, and the less of it the sooner: one small page of
  // each. Allocated, not touched: where there is no room, that would be a SIGBUS.
  for (uint64_t at = 0; at < whole; at += kHugePage) {
    const int error = posix_fallocate(fd, static_cast<off_t>(at), kSmallPage);
    if (error != 0) return error;
  }
  return madvise(base, whole, MADV_COLLAPSE) == 0 ? 0 : errno;
}

}  // namespace arctrace
