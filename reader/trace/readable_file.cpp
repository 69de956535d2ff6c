#include "reader/trace/readable_file.hpp"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/buffer/pinned_map.hpp"

namespace arctrace::reader {
namespace {

bool write_all(int fd, const std::byte* from, uint64_t size) {
  constexpr uint64_t kAtOnce = uint64_t{1} << 30;
  while (size != 0) {
    const ssize_t done = ::write(fd, from, std::min(size, kAtOnce));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    from += done;
    size -= static_cast<uint64_t>(done);
  }
  return true;
}

// A map can only be read by mapping it.
absl::StatusOr<int> copy_map(const std::string& path) {
  uint64_t size = 0;
  const int map = open_pinned_map(path.c_str(), size);
  if (map < 0) return absl::ErrnoToStatus(-map, absl::StrCat("cannot open ", path));
  void* base = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, map, 0);
  const int error = errno;
  ::close(map);
  if (base == MAP_FAILED) {
    return absl::ErrnoToStatus(error, absl::StrCat("cannot map ", path));
  }
  const absl::Cleanup unmapper = [&] { ::munmap(base, size); };
  const int copy = ::memfd_create("arctrace-buffer", MFD_CLOEXEC);
  if (copy < 0 || !write_all(copy, static_cast<const std::byte*>(base), size)) {
    const int reason = errno;
    if (copy >= 0) ::close(copy);
    return absl::ErrnoToStatus(reason, absl::StrCat("cannot copy ", path));
  }
  return copy;
}

// What comes out of a pipe is kept in memory, because readers go back and forth in it.
absl::StatusOr<int> copy_pipe(int pipe, const std::string& path) {
  const int copy = ::memfd_create("arctrace-pipe", MFD_CLOEXEC);
  std::vector<std::byte> part(size_t{1} << 20);
  bool is_good = copy >= 0;
  while (is_good) {
    const ssize_t got = ::read(pipe, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) return copy;
    is_good = got > 0 && write_all(copy, part.data(), static_cast<uint64_t>(got));
  }
  const int error = errno;
  if (copy >= 0) ::close(copy);
  return absl::ErrnoToStatus(error, absl::StrCat("cannot read ", path));
}

}  // namespace

absl::StatusOr<int> open_readable(const std::string& given) {
  const std::string path = given == "-" ? "/dev/stdin" : given;
  struct stat facts {};
  if (::stat(path.c_str(), &facts) == 0 && S_ISFIFO(facts.st_mode)) {
    const int pipe = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (pipe < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
    const absl::Cleanup closer = [pipe] { ::close(pipe); };
    return copy_pipe(pipe, path);
  }
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd >= 0) return fd;
  if (errno == EIO) return copy_map(path);
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
}

}  // namespace arctrace::reader
