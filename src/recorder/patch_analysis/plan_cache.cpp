#include "src/recorder/patch_analysis/plan_cache.hpp"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "src/recorder/patch_analysis/plan_file.hpp"

namespace arctrace {
namespace {

// A descriptor that is closed with this object.
class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }

 private:
  const int fd_;
};

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return true;
}

// Only a file that is this user's: nobody else decides how our programs are patched.
std::optional<std::vector<std::byte>> read_own_file(const std::string& path) {
  const File file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (file.fd() < 0 || ::fstat(file.fd(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_uid != ::geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0 ||
      static_cast<uint64_t>(status.st_size) > kPlanBytesMax) {
    return std::nullopt;
  }
  std::vector<std::byte> bytes(static_cast<size_t>(status.st_size));
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t size = ::read(file.fd(), bytes.data() + done, bytes.size() - done);
    if (size <= 0) return std::nullopt;
    done += static_cast<size_t>(size);
  }
  return bytes;
}

std::string absolute_variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value == '/' ? value : "";
}

}  // namespace

PlanCache PlanCache::of_user() {
  std::string cache = absolute_variable("XDG_CACHE_HOME");
  if (cache.empty()) {
    const std::string home = absolute_variable("HOME");
    if (home.empty()) return PlanCache("");
    cache = home + "/.cache";
  }
  return PlanCache(cache + "/arctrace/plans");
}

std::string PlanCache::file_of(std::span<const std::byte> build_id) const {
  if (directory_.empty() || build_id.empty()) return "";
  const std::string id(reinterpret_cast<const char*>(build_id.data()), build_id.size());
  return absl::StrCat(directory_, "/", absl::BytesToHexString(id), ".plan");
}

std::optional<PatchPlan> PlanCache::load(std::span<const std::byte> build_id,
                                         uint64_t stamp) const {
  const std::string path = file_of(build_id);
  if (path.empty()) return std::nullopt;
  const std::optional<std::vector<std::byte>> bytes = read_own_file(path);
  if (!bytes) return std::nullopt;
  std::optional<PatchPlan> plan = decode_plan_untrusted(*bytes);
  if (!plan || plan->stamp != stamp ||
      !std::equal(plan->build_id.begin(), plan->build_id.end(), build_id.begin(),
                  build_id.end())) {
    return std::nullopt;
  }
  return plan;
}

bool PlanCache::save(const PatchPlan& plan) const {
  const std::string path = file_of(plan.build_id);
  const std::optional<std::vector<std::byte>> bytes = encode_plan(plan);
  if (path.empty() || !bytes) return false;
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  if (error) return false;
  std::string temporary = path + ".XXXXXX";
  const File file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (file.fd() < 0) return false;
  if (!write_all(file.fd(), *bytes) || ::rename(temporary.c_str(), path.c_str()) != 0) {
    ::unlink(temporary.c_str());
    return false;
  }
  return true;
}

}  // namespace arctrace
