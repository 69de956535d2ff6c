#include "reader/streams/nameless_file.hpp"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

namespace arctrace::reader {
namespace {

// A file that vanishes with its descriptor; -1 with errno.
int open_nameless(const std::string& directory) {
  std::string path = directory + "/arctrace-rows-XXXXXX";
  const int file = ::mkostemp(path.data(), O_CLOEXEC);
  if (file >= 0) ::unlink(path.c_str());
  return file;
}

}  // namespace

std::string temporary_directory() {
  const char* directory = std::getenv("TMPDIR");
  return directory != nullptr && *directory != '\0' ? directory : "/tmp";
}

NamelessFile::~NamelessFile() {
  if (file_ >= 0) ::close(file_);
}

void NamelessFile::write_at(uint64_t offset, const void* from, size_t size) {
  if (!status_.ok()) return;
  const std::string directory = temporary_directory();
  const auto* bytes = static_cast<const char*>(from);
  if (file_ < 0) file_ = open_nameless(directory);
  while (file_ >= 0 && size > 0) {
    const ssize_t written = ::pwrite(file_, bytes, size, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    bytes += written;
    offset += static_cast<uint64_t>(written);
    size -= static_cast<size_t>(written);
  }
  if (file_ < 0 || size > 0) {
    status_ = absl::UnavailableError(
        absl::StrCat("cannot keep rows in ", directory, ": ", std::strerror(errno)));
  }
}

size_t NamelessFile::read_at(uint64_t offset, void* to, size_t size) {
  for (;;) {
    const ssize_t got = ::pread(file_, to, size, static_cast<off_t>(offset));
    if (got >= 0) return static_cast<size_t>(got);
    if (errno != EINTR) return 0;
  }
}

}  // namespace arctrace::reader
