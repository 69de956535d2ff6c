// Reads and writes files in the user's cache directory.
#include "src/recorder/cache/user_cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace arctrace::recorder {
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

std::string absolute_variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value == '/' ? value : "";
}

}  // namespace

std::string user_cache_directory() {
  const std::string cache = absolute_variable("XDG_CACHE_HOME");
  if (!cache.empty()) return cache + "/arctrace";
  const std::string home = absolute_variable("HOME");
  return home.empty() ? "" : home + "/.cache/arctrace";
}

std::optional<std::vector<std::byte>> read_own_file(const std::string& path,
                                                    uint64_t bytes_max) {
  const File file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (file.fd() < 0 || ::fstat(file.fd(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_uid != ::geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0 ||
      static_cast<uint64_t>(status.st_size) > bytes_max) {
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

bool write_own_file(const std::string& path, std::span<const std::byte> bytes) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (error) return false;
  std::string temporary = path + ".XXXXXX";
  const File file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (file.fd() < 0) return false;
  if (!write_all(file.fd(), bytes) || ::rename(temporary.c_str(), path.c_str()) != 0) {
    ::unlink(temporary.c_str());
    return false;
  }
  return true;
}

}  // namespace arctrace::recorder
