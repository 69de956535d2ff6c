#include "reader/export/export_file.hpp"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "reader/trace/text_escape.hpp"

namespace arctrace::reader {
namespace {

absl::Status failed(int error, const char* what, const std::string& path) {
  return absl::ErrnoToStatus(error, absl::StrCat(what, " ", path));
}

absl::Status exists(const std::string& path) {
  return absl::AlreadyExistsError(
      absl::StrCat(path, " exists: --force replaces it, -o names another file"));
}

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

}  // namespace

bool ExportFile::is_same_file(const std::string& path, const std::string& other) {
  struct stat a {};
  struct stat b {};
  return ::stat(path.c_str(), &a) == 0 && ::stat(other.c_str(), &b) == 0 &&
         S_ISREG(a.st_mode) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

absl::StatusOr<std::unique_ptr<ExportFile>> ExportFile::create(const std::string& path,
                                                               bool replaces,
                                                               mode_t mode) {
  std::unique_ptr<ExportFile> file(new ExportFile(path, replaces, mode));
  if (absl::Status s = file->open(); !s.ok()) return s;
  return file;
}

absl::Status ExportFile::open() {
  if (path_ == "-") {
    // When `head` or the like closes the pipe, end quietly, even if our parent ignores
    // this signal.
    std::signal(SIGPIPE, SIG_DFL);
    descriptor_ = STDOUT_FILENO;
    return absl::OkStatus();
  }
  struct stat facts {};
  if (::stat(path_.c_str(), &facts) == 0) {
    if (S_ISDIR(facts.st_mode)) return failed(EISDIR, "cannot write", path_);
    if (!S_ISREG(facts.st_mode)) {
      std::signal(SIGPIPE, SIG_DFL);
      descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
      return descriptor_ < 0 ? failed(errno, "cannot write", path_) : absl::OkStatus();
    }
    if (!replaces_) return exists(path_);
  }
  kind_ = Kind::kNameless;
  descriptor_ =
      ::open(directory_of(path_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode_);
  if (descriptor_ >= 0) return absl::OkStatus();
  // Not every file system has files without names.
  kind_ = Kind::kNamed;
  temporary_ = unused_name();
  descriptor_ =
      ::open(temporary_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, mode_);
  if (descriptor_ >= 0) return absl::OkStatus();
  const int error = errno;
  return failed(error, "cannot write", std::exchange(temporary_, {}));
}

// Returns a name beside the file's. An earlier process with our number may have left a
// file of that name, which is removed.
std::string ExportFile::unused_name() const {
  std::string name = absl::StrCat(path_, ".new-", ::getpid());
  ::unlink(name.c_str());
  return name;
}

ExportFile::~ExportFile() {
  if (kind_ == Kind::kStream && path_ == "-") return;
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  if (descriptor_ >= 0) ::close(descriptor_);
}

void ExportFile::write(std::string_view text) {
  while (good() && !text.empty()) {
    const ssize_t got = ::write(descriptor_, text.data(), text.size());
    if (got >= 0) {
      bytes_ += static_cast<uint64_t>(got);
      text.remove_prefix(static_cast<size_t>(got));
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
}

// Gives this name to a file that has none. Returns 0 or errno.
int ExportFile::link_as(const std::string& name) {
  const std::string open_file = absl::StrCat("/proc/self/fd/", descriptor_);
  const int done =
      ::linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW);
  return done == 0 ? 0 : errno;
}

absl::Status ExportFile::publish() {
  if (!good()) {
    return failed(error_, "cannot write", path_ == "-" ? "standard output" : path_);
  }
  if (kind_ == Kind::kStream) return absl::OkStatus();
  // A disk may report an error as late as this.
  if (::fsync(descriptor_) != 0 && errno != EINVAL) {
    return failed(errno, "cannot write", path_);
  }
  if (kind_ == Kind::kNameless) {
    const std::string name = replaces_ ? unused_name() : path_;
    const int error = link_as(name);
    if (error == EEXIST && !replaces_) return exists(path_);
    if (error != 0) return failed(error, "cannot write", name);
    if (!replaces_) return absl::OkStatus();
    temporary_ = name;
  }
  const int error = move_to_path();
  if (error == EEXIST) return exists(path_);
  if (error != 0) return failed(error, "cannot write", path_);
  temporary_.clear();
  return absl::OkStatus();
}

// Gives the file its name in place of the temporary one. Returns 0 or errno.
int ExportFile::move_to_path() {
  const unsigned flags = replaces_ ? 0 : RENAME_NOREPLACE;
  if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), flags) == 0) {
    return 0;
  }
  const bool lacks_flag = errno == EINVAL || errno == ENOSYS;
  if (replaces_ || !lacks_flag) return errno;
  // NFS, for one, does not know RENAME_NOREPLACE, but it has links.
  if (::link(temporary_.c_str(), path_.c_str()) != 0) return errno;
  ::unlink(temporary_.c_str());
  return 0;
}

}  // namespace arctrace::reader
