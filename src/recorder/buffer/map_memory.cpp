// Creates and pins BPF maps, and allocates huge pages.
#include "src/recorder/buffer/map_memory.hpp"

#include <absl/strings/str_cat.h>
#include <arctrace/format.h>
#include <bpf/bpf.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "src/buffer/open_buffer.hpp"

namespace arctrace::recorder {

namespace {

bool is_bpf_mount() {
  struct statfs status {};
  return statfs(kMapDirectory, &status) == 0 &&
         static_cast<uint64_t>(status.f_type) == BPF_FS_MAGIC;
}

absl::Status ensure_mount() {
  if (is_bpf_mount()) return absl::OkStatus();
  if (mkdir(kMapDirectory, 0711) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(errno, absl::StrCat("making ", kMapDirectory));
  }
  if (mount("bpf", kMapDirectory, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0711") !=
      0) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("mounting a BPF file system on ", kMapDirectory));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> create_map(uint64_t size) {
  if (size > ARCTRACE_BPF_SIZE_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat("a buffer of ", size, " bytes is larger than a BPF map may be, ",
                     ARCTRACE_BPF_SIZE_MAX));
  }
  bpf_map_create_opts options{};
  options.sz = sizeof options;
  options.map_flags = BPF_F_MMAPABLE;
  const int map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "arctrace", sizeof(uint32_t),
                                 static_cast<uint32_t>(size), 1, &options);
  if (map < 0) {
    return absl::ErrnoToStatus(-map,
                               absl::StrCat("making a BPF map of ", size, " bytes"));
  }
  return map;
}

std::optional<arctrace_hook_cost> measure_map_cost(int map, uint64_t size) {
  const uint64_t mib = size >> 20;
  if (mib == 0) return std::nullopt;
  const auto cpu_ns = [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<uint64_t>(now.tv_nsec);
  };
  const uint64_t begin_ns = cpu_ns();
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
  if (memory == MAP_FAILED) return std::nullopt;
  const uint64_t mapped_ns = cpu_ns();
  munmap(memory, size);
  const auto ps_of_mib = [&](uint64_t ns) {
    return static_cast<uint32_t>(std::min<uint64_t>(ns * 1000 / mib, UINT32_MAX));
  };
  return arctrace_hook_cost{.kind = ARCTRACE_HOOK_PROCESS,
                            .inside_ps = ps_of_mib(mapped_ns - begin_ns),
                            .outside_ps = ps_of_mib(cpu_ns() - mapped_ns)};
}

absl::StatusOr<std::string> pin_map(int map, int64_t owner, int64_t group) {
  if (absl::Status status = ensure_mount(); !status.ok()) return status;
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
    return absl::ErrnoToStatus(errno, "getrandom");
  }
  std::string path = absl::StrCat(kMapDirectory, "/arctrace-", getuid(), "-", getpid(),
                                  "-", absl::Hex(number));
  if (const int error = bpf_obj_pin(map, path.c_str()); error < 0) {
    return absl::ErrnoToStatus(-error, absl::StrCat("pinning ", path));
  }
  if ((group >= 0 &&
       (chown(path.c_str(), static_cast<uid_t>(-1), static_cast<gid_t>(group)) != 0 ||
        chmod(path.c_str(), 0660) != 0)) ||
      (owner >= 0 &&
       chown(path.c_str(), static_cast<uid_t>(owner), static_cast<gid_t>(-1)) != 0)) {
    const int error = errno;
    unlink(path.c_str());
    return absl::ErrnoToStatus(error, absl::StrCat("sharing ", path));
  }
  return path;
}

}  // namespace arctrace::recorder

#if !defined(MADV_COLLAPSE)
#define MADV_COLLAPSE 25  // Linux 6.1
#endif

namespace arctrace::recorder {

int allocate_huge_pages(int fd, std::byte* base, uint64_t size) {
  constexpr off_t kSmallPage = 4096;
  const uint64_t whole = size / kHugePageSize * kHugePageSize;
  if (whole == 0) return 0;
  // The free space is checked first, so that a file system that is too small is not
  // filled up in vain.
  struct statvfs space {};
  if (fstatvfs(fd, &space) != 0) return errno;
  const bool has_limit = space.f_blocks != 0;  // a tmpfs without one has no blocks
  if (has_limit && size / space.f_frsize >= space.f_bavail) return ENOSPC;
  // MADV_COLLAPSE skips huge pages without any allocated memory, and copies the pages
  // that it finds: so one small page of each is allocated. Touching it instead would
  // raise SIGBUS where there is no memory.
  for (uint64_t at = 0; at < whole; at += kHugePageSize) {
    const int error = posix_fallocate(fd, static_cast<off_t>(at), kSmallPage);
    if (error != 0) return error;
  }
  return madvise(base, whole, MADV_COLLAPSE) == 0 ? 0 : errno;
}

}  // namespace arctrace::recorder
