// Opens a trace file and gives it its name: a regular file that has none until it is
// published, a FIFO or device that the user named, or standard output.
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <utility>

#include "src/recorder/file/trace_file.hpp"

namespace arctrace::recorder {
namespace {

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

std::string name_in_directory(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::string kind_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFIFO:
      return "FIFO";
    case S_IFBLK:
      return "block device";
    case S_IFCHR:
      return "character device";
    case S_IFSOCK:
      return "socket";
    default:
      return "special file";
  }
}

bool is_special(const struct stat& status) {
  return !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode) && !S_ISLNK(status.st_mode);
}

// Whether only this user or root can have put a link into the directory, as into /dev.
bool is_trusted_directory(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 &&
         (status.st_uid == 0 || status.st_uid == geteuid()) &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Whether a signal that ends programs is pending until this thread admits it.
bool is_end_pending() {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
         sigismember(&pending, SIGQUIT) == 1 || sigismember(&pending, SIGHUP) == 1;
}

}  // namespace

absl::StatusOr<TraceFile> TraceFile::create(const std::string& path,
                                            SpecialFile special) {
  if (path == "-") {
    const int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (fd < 0) return absl::ErrnoToStatus(errno, "standard output");
    return TraceFile(fd, path);
  }
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return create_new(path);
  if (S_ISDIR(status.st_mode)) return absl::ErrnoToStatus(EISDIR, path);
  const bool is_link = S_ISLNK(status.st_mode);
  if (special == SpecialFile::kRefuse) {
    if (!is_special(status)) return create_new(path);
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": a ", kind_of(status.st_mode), ", into which only -o ", path, " writes"));
  }
  struct stat target {};
  if (is_link && stat(path.c_str(), &target) == 0) status = target;
  if (!is_special(status)) return create_new(path);
  if (is_link && !is_trusted_directory(directory_of(path))) {
    return absl::PermissionDeniedError(absl::StrCat(
        path, ": a link to a ", kind_of(status.st_mode),
        ", which anybody may have put there: name the ", kind_of(status.st_mode)));
  }
  return open_special(path, kind_of(status.st_mode));
}

// The file is opened without waiting: a FIFO without a reader would block this process,
// which has blocked the signals that end it.
absl::StatusOr<TraceFile> TraceFile::open_special(const std::string& path,
                                                  std::string kind) {
  constexpr timespec kPause{0, 20'000'000};
  for (;;) {
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd >= 0) {
      fcntl(fd, F_SETFL, O_WRONLY);  // without O_NONBLOCK
      TraceFile file(fd, path);
      file.special_kind_ = std::move(kind);
      return file;
    }
    if (errno != ENXIO && errno != EINTR) {
      return absl::ErrnoToStatus(errno, absl::StrCat("opening ", path));
    }
    if (is_end_pending()) {
      return absl::CancelledError(
          absl::StrCat("ended by a signal, while nobody read the ", kind, " ", path));
    }
    nanosleep(&kPause, nullptr);
  }
}

// The directory stays open, so that the file that is renamed in it at the end is the one
// that was made here.
absl::StatusOr<TraceFile> TraceFile::create_new(const std::string& path) {
  const std::string directory = directory_of(path);
  const std::string name = name_in_directory(path);
  if (name.empty()) return absl::ErrnoToStatus(EISDIR, path);
  TraceFile file(-1, path);
  file.directory_ = open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (file.directory_ < 0) return absl::ErrnoToStatus(errno, "creating " + path);
  file.start_ = 0;
  file.temporary_ = absl::StrCat(name, ".new-", getpid());
  // The file has no name, so that nothing stays behind if this process ends. It is
  // readable, because cut_end() returns the bytes that it cuts off.
  file.fd_ = openat(file.directory_, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  file.is_nameless_ = file.fd_ >= 0;
  if (file.is_nameless_) return file;
  // The name is removed first and created with O_EXCL, because in a directory that others
  // may write to it could be planted.
  unlinkat(file.directory_, file.temporary_.c_str(), 0);
  file.fd_ = openat(file.directory_, file.temporary_.c_str(),
                    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file.fd_ < 0) {
    file.temporary_.clear();
    return absl::ErrnoToStatus(errno, "creating " + path);
  }
  return file;
}

absl::Status TraceFile::publish() {
  return temporary_.empty() ? absl::OkStatus() : publish_as(path_);
}

absl::Status TraceFile::name_temporarily() {
  if (!is_nameless_) return absl::OkStatus();
  unlinkat(directory_, temporary_.c_str(), 0);
  const std::string open_file = absl::StrCat("/proc/self/fd/", fd_);
  if (linkat(AT_FDCWD, open_file.c_str(), directory_, temporary_.c_str(),
             AT_SYMLINK_FOLLOW) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("naming ", path_));
  }
  is_nameless_ = false;
  return absl::OkStatus();
}

absl::Status TraceFile::publish_as(const std::string& path) {
  if (absl::Status status = name_temporarily(); !status.ok()) return status;
  const std::string name = name_in_directory(path);
  const std::string old = name + ".old";
  if (renameat(directory_, name.c_str(), directory_, old.c_str()) != 0 &&
      errno != ENOENT) {
    return absl::ErrnoToStatus(errno,
                               absl::StrCat("renaming ", path, " to ", path, ".old"));
  }
  const std::string from = temporary_.empty() ? name_in_directory(path_) : temporary_;
  if (renameat(directory_, from.c_str(), directory_, name.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("creating ", path));
  }
  temporary_.clear();
  path_ = path;
  return absl::OkStatus();
}

TraceFile::TraceFile(int fd, std::string path)
    : fd_(fd), start_(fd < 0 ? -1 : lseek(fd, 0, SEEK_CUR)), path_(std::move(path)) {}

TraceFile::TraceFile(TraceFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      reserve_(std::exchange(other.reserve_, -1)),
      directory_(std::exchange(other.directory_, -1)),
      start_(other.start_),
      path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, std::string())),
      is_nameless_(std::exchange(other.is_nameless_, false)),
      special_kind_(std::move(other.special_kind_)),
      header_(std::move(other.header_)),
      index_(std::exchange(other.index_, std::nullopt)),
      bytes_(other.bytes_),
      sequence_(other.sequence_),
      error_(other.error_) {}

TraceFile& TraceFile::operator=(TraceFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(reserve_, other.reserve_);
  std::swap(directory_, other.directory_);
  std::swap(start_, other.start_);
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(is_nameless_, other.is_nameless_);
  std::swap(special_kind_, other.special_kind_);
  std::swap(header_, other.header_);
  std::swap(index_, other.index_);
  std::swap(bytes_, other.bytes_);
  std::swap(sequence_, other.sequence_);
  std::swap(error_, other.error_);
  return *this;
}

TraceFile::~TraceFile() {
  if (fd_ >= 0) close(fd_);
  release_reserve();
  if (!temporary_.empty() && !is_nameless_) unlinkat(directory_, temporary_.c_str(), 0);
  if (directory_ >= 0) close(directory_);
}

void TraceFile::take_reserve() {
  constexpr uint64_t kReserveMax = uint64_t{1} << 20;
  constexpr uint64_t kReserveMin = uint64_t{64} << 10;
  struct statvfs disk {};
  if (directory_ < 0 || reserve_ >= 0 || fstatvfs(fd_, &disk) != 0) return;
  const uint64_t free = uint64_t{disk.f_bavail} * disk.f_frsize;
  uint64_t size = kReserveMax;
  while (size > free / 4) size /= 2;
  if (size < kReserveMin) return;
  reserve_ = openat(directory_, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (reserve_ < 0 || fallocate(reserve_, 0, 0, static_cast<off_t>(size)) == 0) return;
  release_reserve();
}

uint64_t TraceFile::release_reserve() {
  if (reserve_ < 0) return 0;
  struct stat status {};
  const bool is_known = fstat(reserve_, &status) == 0;
  close(std::exchange(reserve_, -1));
  return is_known ? static_cast<uint64_t>(status.st_size) : 0;
}

// Waits for a pipe or FIFO whose reader has stopped reading. It would block this process,
// which has blocked the signals that end it. False: such a signal is pending.
bool TraceFile::wait_for_reader() const {
  constexpr int kPauseMs = 200;
  if (start_ >= 0) return true;
  pollfd file{fd_, POLLOUT, 0};
  while (poll(&file, 1, kPauseMs) == 0) {
    if (is_end_pending()) return false;
  }
  return true;
}

}  // namespace arctrace::recorder
