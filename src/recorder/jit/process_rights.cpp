// Reads the rights of a process, and takes them for the calling thread.
#include "src/recorder/jit/process_rights.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

#include "src/base/kernel_file_systems.hpp"

namespace arctrace::recorder {
namespace {

constexpr gid_t kNoGroup = 65534;
// The capabilities that a thread needs to take another one's rights.
constexpr uint64_t kChangeRights = uint64_t{1} << CAP_SETUID | uint64_t{1} << CAP_SETGID;

// The numbers of the line "NAME:\t1 2 3"; nullopt: there is no such line.
std::optional<std::vector<uint32_t>> numbers_of(const std::string& text,
                                                std::string_view name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name)) continue;
    std::istringstream words(line.substr(name.size()));
    std::vector<uint32_t> numbers;
    for (uint32_t number = 0; words >> number;) numbers.push_back(number);
    return numbers;
  }
  return std::nullopt;
}

using CapabilitySets = std::array<__user_cap_data_struct, 2>;  // bits 0 to 31, 32 to 63

__user_cap_header_struct this_thread() { return {_LINUX_CAPABILITY_VERSION_3, 0}; }

CapabilitySets capabilities() {
  __user_cap_header_struct header = this_thread();
  CapabilitySets sets{};
  syscall(SYS_capget, &header, sets.data());
  return sets;
}

uint64_t effective_capabilities() {
  const CapabilitySets sets = capabilities();
  return sets[0].effective | uint64_t{sets[1].effective} << 32;
}

// Makes those capabilities of `wanted` effective that the thread is permitted.
void set_effective(uint64_t wanted) {
  CapabilitySets sets = capabilities();
  sets[0].effective = static_cast<uint32_t>(wanted) & sets[0].permitted;
  sets[1].effective = static_cast<uint32_t>(wanted >> 32) & sets[1].permitted;
  __user_cap_header_struct header = this_thread();
  syscall(SYS_capset, &header, sets.data());
}

// Makes the system call itself, because glibc's function changes all threads.
bool set_groups(const std::vector<gid_t>& groups) {
  return syscall(SYS_setgroups, groups.size(), groups.data()) == 0;
}

std::vector<gid_t> current_groups() {
  std::vector<gid_t> groups(static_cast<size_t>(std::max(0, getgroups(0, nullptr))));
  const int count = getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<size_t>(std::max(0, count)));
  return groups;
}

}  // namespace

std::optional<ProcessStatus> parse_process_status(const std::string& text) {
  // Each line "Uid:" has the real, effective, saved and file system's number.
  constexpr size_t kForFiles = 3;
  const auto users = numbers_of(text, "Uid:");
  const auto groups = numbers_of(text, "Gid:");
  const auto more_groups = numbers_of(text, "Groups:");
  const auto pids = numbers_of(text, "NSpid:");
  if (!users || users->size() <= kForFiles || !groups || groups->size() <= kForFiles ||
      !more_groups || !pids || pids->empty()) {
    return std::nullopt;
  }
  return ProcessStatus{pids->back(),
                       {(*users)[kForFiles], (*groups)[kForFiles], *more_groups}};
}

ProcessRights rights_of_user(uid_t user) { return {user, kNoGroup, {}}; }

ActingWithRights::ActingWithRights(const ProcessRights& rights) {
  effective_before_ = effective_capabilities();
  is_privileged_ = effective_before_ != 0;
  if ((effective_before_ & kChangeRights) != kChangeRights) {
    // Rights other than the thread's own cannot be taken. Without capabilities, its own
    // are those of its user.
    if (is_privileged_) set_effective(0);
    is_acting_ = !is_privileged_ || rights.user == geteuid();
    return;
  }
  user_before_ = static_cast<uid_t>(setfsuid(static_cast<uid_t>(-1)));
  group_before_ = static_cast<gid_t>(setfsgid(static_cast<gid_t>(-1)));
  groups_before_ = current_groups();
  const bool has_groups = set_groups(rights.groups);
  setfsgid(rights.group);
  setfsuid(rights.user);
  set_effective(0);
  is_acting_ = has_groups &&
               static_cast<uid_t>(setfsuid(static_cast<uid_t>(-1))) == rights.user &&
               static_cast<gid_t>(setfsgid(static_cast<gid_t>(-1))) == rights.group;
}

ActingWithRights::~ActingWithRights() {
  if (!is_privileged_) return;
  set_effective(effective_before_);
  if ((effective_before_ & kChangeRights) != kChangeRights) return;
  setfsuid(user_before_);
  setfsgid(group_before_);
  set_groups(groups_before_);
  // setfsuid() drops capabilities, or restores them, with the user's number.
  set_effective(effective_before_);
}

int open_for_process_untrusted(int root, const std::string& path,
                               const ProcessRights& rights) {
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  int fd = -1;
  {
    const ActingWithRights acting(rights);
    if (!acting.is_acting()) return -1;
    fd = static_cast<int>(syscall(SYS_openat2, root, path.c_str(), &how, sizeof how));
  }
  if (fd < 0) return -1;
  struct stat status {};
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
      status.st_uid == rights.user && status.st_nlink <= 1 &&
      !is_made_up_file(fd, rights.user == geteuid())) {
    return fd;
  }
  close(fd);
  return -1;
}

}  // namespace arctrace::recorder
