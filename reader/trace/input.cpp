#include "reader/trace/input.hpp"

#include <absl/cleanup/cleanup.h>
#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "src/buffer/open_buffer.hpp"

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

// Copies a map, because it can only be read by mapping it.
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

// Copies a pipe into memory, because readers go back and forth in it.
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

namespace {

class FileInput : public Input {
 public:
  FileInput(std::string name, int descriptor, uint64_t size)
      : name_(std::move(name)), descriptor_(descriptor), size_(size) {}
  FileInput(const FileInput&) = delete;
  FileInput& operator=(const FileInput&) = delete;
  ~FileInput() override { ::close(descriptor_); }

  const std::string& name() const override { return name_; }
  uint64_t size() const override { return size_; }
  uint64_t pinned_bytes_untrusted() const override {
    return arctrace::pinned_bytes_untrusted(descriptor_);
  }

  absl::StatusOr<size_t> read(uint64_t offset, std::span<std::byte> into) override {
    size_t done = 0;
    while (done < into.size()) {
      const ssize_t got = ::pread(descriptor_, into.data() + done, into.size() - done,
                                  static_cast<off_t>(offset + done));
      if (got == 0) break;
      if (got < 0) {
        if (errno == EINTR) continue;
        return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", name_));
      }
      done += static_cast<size_t>(got);
    }
    return done;
  }

 private:
  std::string name_;
  int descriptor_;
  uint64_t size_;
};

class MemoryInput : public Input {
 public:
  MemoryInput(std::string name, std::vector<std::byte> bytes)
      : name_(std::move(name)), bytes_(std::move(bytes)) {}

  const std::string& name() const override { return name_; }
  uint64_t size() const override { return bytes_.size(); }

  absl::StatusOr<size_t> read(uint64_t offset, std::span<std::byte> into) override {
    if (offset >= bytes_.size() || into.empty()) return size_t{0};
    const size_t count = std::min<size_t>(into.size(), bytes_.size() - offset);
    std::memcpy(into.data(), bytes_.data() + offset, count);
    return count;
  }

 private:
  std::string name_;
  std::vector<std::byte> bytes_;
};

class AppendedInput : public Input {
 public:
  AppendedInput(std::unique_ptr<Input> input, std::vector<std::byte> bytes)
      : input_(std::move(input)), appended_("", std::move(bytes)) {}

  const std::string& name() const override { return input_->name(); }
  uint64_t size() const override { return input_->size(); }
  uint64_t pinned_bytes_untrusted() const override {
    return input_->pinned_bytes_untrusted();
  }

  absl::StatusOr<size_t> read(uint64_t offset, std::span<std::byte> into) override {
    return offset < kAppendedOffset ? input_->read(offset, into)
                                    : appended_.read(offset - kAppendedOffset, into);
  }

 private:
  std::unique_ptr<Input> input_;
  MemoryInput appended_;
};

}  // namespace

std::unique_ptr<Input> append_to_input(std::unique_ptr<Input> input,
                                       std::vector<std::byte> bytes) {
  return std::make_unique<AppendedInput>(std::move(input), std::move(bytes));
}

absl::StatusOr<std::unique_ptr<Input>> open_file(const std::string& path) {
  const absl::StatusOr<int> opened = open_readable(path);
  if (!opened.ok()) return opened.status();
  const int descriptor = *opened;
  struct stat facts {};
  if (::fstat(descriptor, &facts) != 0) {
    const int error = errno;
    ::close(descriptor);
    return absl::ErrnoToStatus(error, absl::StrCat("cannot open ", path));
  }
  if (!S_ISREG(facts.st_mode)) {
    ::close(descriptor);
    return absl::InvalidArgumentError(absl::StrCat(path, ": not a regular file"));
  }
  return std::make_unique<FileInput>(path, descriptor,
                                     static_cast<uint64_t>(facts.st_size));
}

std::unique_ptr<Input> memory_input(std::string name, std::vector<std::byte> bytes) {
  return std::make_unique<MemoryInput>(std::move(name), std::move(bytes));
}

}  // namespace arctrace::reader
