// Reads limits of memory from files of the kernel, and explains what helps where there is
// too little.
#include "src/recorder/buffer/available_memory.hpp"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

namespace arctrace::recorder {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The number in a file of one number; nullopt for "max" and everything else.
std::optional<uint64_t> read_number(const std::string& path) {
  uint64_t number = 0;
  return absl::SimpleAtoi(read_text(path), &number) ? std::optional(number)
                                                    : std::nullopt;
}

// The sum of the fields of a memory.stat whose lines begin with these names.
uint64_t sum_of_fields(const std::string& path, const std::vector<std::string>& names) {
  uint64_t sum = 0;
  for (const auto line : absl::StrSplit(read_text(path), '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    uint64_t number = 0;
    if (words.size() == 2 && absl::SimpleAtoi(words[1], &number) &&
        std::find(names.begin(), names.end(), words[0]) != names.end()) {
      sum += number;
    }
  }
  return sum;
}

// The files of a cgroup's memory controller, of one of the two versions.
struct Controller {
  const char* mount;  // of the hierarchy, in /sys/fs/cgroup
  const char* limit;
  const char* usage;
  std::vector<std::string> cache;  // in memory.stat: memory that can be given up
};

const std::array<Controller, 2>& controllers() {
  static const std::array<Controller, 2> both = {
      Controller{"sys/fs/cgroup",
                 "memory.max",
                 "memory.current",
                 {"active_file", "inactive_file"}},
      Controller{"sys/fs/cgroup/memory",
                 "memory.limit_in_bytes",
                 "memory.usage_in_bytes",
                 {"total_active_file", "total_inactive_file"}}};
  return both;
}

AvailableMemory memory_of_cgroup(const Controller& controller,
                                 const std::string& directory) {
  AvailableMemory available;
  const auto limit = read_number(absl::StrCat(directory, "/", controller.limit));
  const auto usage = read_number(absl::StrCat(directory, "/", controller.usage));
  // Version 1 writes a number for "no limit" that no machine has.
  if (!limit || !usage || *limit > (uint64_t{1} << 60)) return available;
  const uint64_t cache =
      sum_of_fields(absl::StrCat(directory, "/memory.stat"), controller.cache);
  const uint64_t used = *usage > cache ? *usage - cache : 0;
  available.total = *limit;
  available.free = *limit > used ? *limit - used : 0;
  available.name = absl::StrCat("the memory limit of the cgroup, ", size_text(*limit));
  return available;
}

}  // namespace

std::string size_text(uint64_t bytes) {
  if (bytes % kMiB == 0 || bytes >= 10 * kMiB) return absl::StrCat(bytes / kMiB, "M");
  return absl::StrCat(bytes / 1024, "k");
}

std::string directory_remedies(const std::string& directory, bool is_too_small) {
  std::string text;
  if (directory == kBufferDirectory) {
    absl::StrAppend(&text,
                    is_too_small ? "; as root: mount -o remount,size=1G "
                                 : "; as root: mount -t tmpfs tmpfs ",
                    directory, "; for a container: --shm-size=1g, or --tmpfs ", directory,
                    ":size=1g");
  }
  absl::StrAppend(&text, "; or --buffer-dir=DIR, a directory of a tmpfs");
  return text;
}

CgroupMemory cgroup_memory(const std::string& root) {
  CgroupMemory least;
  // Each line is NUMBER:CONTROLLERS:PATH. In a container the path may be the host's,
  // which does not exist there; but the container's own cgroup is mounted at the top.
  for (const auto line :
       absl::StrSplit(read_text(absl::StrCat(root, "/proc/self/cgroup")), '\n')) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    const std::vector<std::string> of = absl::StrSplit(fields[1], ',');
    const bool is_version_1 = std::find(of.begin(), of.end(), "memory") != of.end();
    if (!is_version_1 && !fields[1].empty()) continue;
    const Controller& controller = controllers()[is_version_1 ? 1 : 0];
    for (std::string path = fields[2];;) {
      const AvailableMemory available = memory_of_cgroup(
          controller, absl::StrCat(root, "/", controller.mount, "/", path));
      if (available.total < least.least_total.total) least.least_total = available;
      if (available.free < least.least_free.free) least.least_free = available;
      const size_t slash = path.rfind('/');
      if (path.empty() || slash == std::string::npos) break;
      path.resize(slash);
    }
  }
  return least;
}

AvailableMemory directory_space(const std::string& directory) {
  AvailableMemory available;
  struct statvfs system {};
  if (statvfs(directory.c_str(), &system) != 0) return available;
  available.total = uint64_t{system.f_blocks} * system.f_frsize;
  available.free = uint64_t{system.f_bavail} * system.f_frsize;
  if (available.total == 0) return {};  // a tmpfs without a limit
  available.name =
      absl::StrCat("the room in ", directory, ", ", size_text(available.free));
  return available;
}

AvailableMemory machine_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return {};
  const uint64_t total = static_cast<uint64_t>(pages) * static_cast<uint64_t>(page);
  return {total, total, absl::StrCat("the machine's memory, ", size_text(total))};
}

absl::Status explain_directory(int error, uint64_t size, const std::string& directory) {
  const auto status = [&](const std::string& why, bool is_too_small) {
    return absl::Status(absl::ErrnoToStatusCode(error),
                        absl::StrCat("no buffer in ", directory, ": ", why,
                                     directory_remedies(directory, is_too_small)));
  };
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return status("there is no such directory", false);
    case EROFS:
      return status("it is read-only", false);
    case EACCES:
    case EPERM:
      return status("this user may not write to it", false);
    case EFBIG: {
      rlimit limit{};
      getrlimit(RLIMIT_FSIZE, &limit);
      return absl::ResourceExhaustedError(
          absl::StrCat("no room for a buffer of ", size_text(size), " in ", directory,
                       ": a file may have no more than ", limit.rlim_cur,
                       " bytes (RLIMIT_FSIZE, ulimit -f); -b sets a smaller size"));
    }
    case ENOSPC:
    case EDQUOT:
    case ENOMEM: {
      if (size == 0) {
        return absl::ResourceExhaustedError(absl::StrCat(
            "no buffer in ", directory, ": ",
            error == ENOSPC ? "it has no room for another file" : std::strerror(error),
            "; remove files there, or --buffer-dir=DIR, a directory of a "
            "tmpfs"));
      }
      const AvailableMemory available = directory_space(directory);
      const std::string has =
          available.total == UINT64_MAX
              ? std::string(std::strerror(error))
              : absl::StrCat("it has room for ", size_text(available.free), " of ",
                             size_text(available.total));
      return absl::ResourceExhaustedError(absl::StrCat(
          "no room for a buffer of ", size_text(size), " in ", directory, ": ", has,
          "; -b sets a smaller size", directory_remedies(directory, true)));
    }
    default:
      return status(std::strerror(error), false);
  }
}

bool is_in_memory(const std::string& directory) {
  struct statfs system {};
  if (statfs(directory.c_str(), &system) != 0) return true;
  const auto type = static_cast<uint64_t>(system.f_type);
  return type == TMPFS_MAGIC || type == RAMFS_MAGIC || type == HUGETLBFS_MAGIC;
}

}  // namespace arctrace::recorder
