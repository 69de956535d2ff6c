#include "src/recorder/file/trace_file.hpp"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

#include "src/base/checksum.hpp"

namespace arctrace {

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

// Whether a signal that ends programs waits until this thread admits it.
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

// Opened without waiting: a FIFO that has no reader would keep this process, which has
// blocked the signals that end it.
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

// The directory is held, so that what is renamed in it at the end is what was made here.
absl::StatusOr<TraceFile> TraceFile::create_new(const std::string& path) {
  const std::string directory = directory_of(path);
  const std::string name = name_in_directory(path);
  if (name.empty()) return absl::ErrnoToStatus(EISDIR, path);
  TraceFile file(-1, path);
  file.directory_ = open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (file.directory_ < 0) return absl::ErrnoToStatus(errno, "creating " + path);
  file.start_ = 0;
  file.temporary_ = absl::StrCat(name, ".new-", getpid());
  // Without a name, so that whatever ends this process leaves nothing behind. Readable,
  // because cut_end() returns what it takes off the end.
  file.fd_ = openat(file.directory_, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  file.is_nameless_ = file.fd_ >= 0;
  if (file.is_nameless_) return file;
  // Removed first and created with O_EXCL, because in a directory that others may write
  // to the name could be planted.
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

void TraceFile::restart() {
  if (start_ < 0 || ftruncate(fd_, start_) != 0) return;
  lseek(fd_, start_, SEEK_SET);
  bytes_ = 0;
  sequence_ = 0;
  if (index_) index_->cut(sequence_);
}

void TraceFile::sync() {
  if (directory_ >= 0 && fsync(fd_) != 0 && error_ == 0) error_ = errno;
}

// A pipe or FIFO whose reader has stopped reading would keep this process, which has
// blocked the signals that end it. False: such a signal waits.
bool TraceFile::wait_for_reader() const {
  constexpr int kPauseMs = 200;
  if (start_ >= 0) return true;
  pollfd file{fd_, POLLOUT, 0};
  while (poll(&file, 1, kPauseMs) == 0) {
    if (is_end_pending()) return false;
  }
  return true;
}

void TraceFile::append(std::span<iovec> parts) {
  uint64_t size = 0;
  for (const iovec& part : parts) size += part.iov_len;
  while (!parts.empty()) {
    if (!wait_for_reader()) {
      error_ = EINTR;
      break;
    }
    const ssize_t n = writev(fd_, parts.data(), static_cast<int>(parts.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      error_ = n < 0 ? errno : EIO;
      break;
    }
    auto done = static_cast<size_t>(n);
    while (!parts.empty() && done >= parts.front().iov_len) {
      done -= parts.front().iov_len;
      parts = parts.subspan(1);
    }
    if (!parts.empty()) {
      iovec& part = parts.front();
      part.iov_base = static_cast<std::byte*>(part.iov_base) + done;
      part.iov_len -= done;
    }
  }
  if (parts.empty()) {
    bytes_ += size;
    return;
  }
  // On a pipe, or if the file system fails altogether, the cut-off chunk stays; readers
  // cope with it.
  const int64_t end = start_ + static_cast<int64_t>(bytes_);
  if (start_ < 0 || ftruncate(fd_, end) != 0) return;
  lseek(fd_, end, SEEK_SET);
}

void TraceFile::write_header(const arctrace_session_header& header) {
  arctrace_session_header copy = header;
  copy.magic = ARCTRACE_FILE_MAGIC;
  copy.version_minor = ARCTRACE_VERSION_MINOR;  // the buffer's may be an earlier one
  copy.features_required |= ARCTRACE_FEATURE_CHECKSUMS;
  header_.assign(ARCTRACE_HEADER_SIZE, std::byte{0});
  std::memcpy(header_.data(), &copy, sizeof copy);
  append_header();
}

void TraceFile::append_header() {
  iovec parts[] = {{header_.data(), header_.size()}};
  append(parts);
}

void TraceFile::write_chunk(arctrace_chunk_kind kind, uint16_t flags, uint32_t index,
                            uint64_t ticks, std::span<const std::byte> first,
                            std::span<const std::byte> rest, ChunkFacts facts) {
  if (error_ == 0 && bytes_ == 0 && !header_.empty()) append_header();
  if (error_ != 0) return;
  arctrace_chunk_header chunk{};
  chunk.magic = ARCTRACE_CHUNK_MAGIC;
  chunk.kind = static_cast<uint16_t>(kind);
  chunk.flags = flags;
  chunk.size = static_cast<uint32_t>(first.size() + rest.size());
  chunk.index = index;
  chunk.sequence = sequence_;
  chunk.ticks = ticks;
  Checksum checksum;
  checksum.add(std::as_bytes(std::span(&chunk, 1)));
  checksum.add(first);
  checksum.add(rest);
  chunk.checksum = checksum.value();
  iovec parts[] = {{&chunk, sizeof chunk},
                   {const_cast<std::byte*>(first.data()), first.size()},
                   {const_cast<std::byte*>(rest.data()), rest.size()}};
  append(parts);
  if (error_ != 0) return;
  ++sequence_;
  if (index_) index_->add(chunk, first, facts);
}

void TraceFile::write_index(uint64_t ticks) {
  if (!index_ || error_ != 0 || directory_ < 0 || !index_->has_all(sequence_)) return;
  const uint64_t begin = bytes_;
  const uint32_t begin_sequence = sequence_;
  const std::vector<std::byte> writers = index_->take_writers();
  for (size_t at = 0; at < writers.size(); at += ARCTRACE_WRITERS_CHUNK_BYTES_MAX) {
    const auto size =
        std::min<size_t>(writers.size() - at, ARCTRACE_WRITERS_CHUNK_BYTES_MAX);
    write_chunk(ARCTRACE_CHUNK_WRITERS, 0, 0, ticks,
                std::span(writers).subspan(at, size));
  }
  const FileIndex index = *std::exchange(index_, std::nullopt);
  const uint64_t offset = bytes_;
  if (index.has_all(sequence_)) {
    write_chunk(ARCTRACE_CHUNK_INDEX, 0, 0, ticks, index.payload());
  }
  // The header comes last, so that it never leads to an index that is not whole.
  constexpr off_t kAt = offsetof(arctrace_session_header, index_offset);
  if (error_ == 0 && bytes_ != offset &&
      pwrite(fd_, &offset, sizeof offset, start_ + kAt) !=
          static_cast<ssize_t>(sizeof offset)) {
    error_ = errno;
  }
  if (error_ != 0 && bytes_ != begin) cut_back(begin, begin_sequence);
  error_ = 0;
}

std::vector<TraceFile::CutChunk> TraceFile::cut_end(uint64_t bytes) {
  struct stat status {};
  if (start_ < 0 || fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) return {};
  const auto read_at = [this](uint64_t offset, void* to, size_t size) {
    return pread(fd_, to, size, start_ + static_cast<off_t>(offset)) ==
           static_cast<ssize_t>(size);
  };
  std::vector<uint64_t> offsets;
  arctrace_chunk_header chunk{};
  for (uint64_t at = ARCTRACE_HEADER_SIZE; at < bytes_; at += sizeof chunk + chunk.size) {
    if (!read_at(at, &chunk, sizeof chunk) || chunk.magic != ARCTRACE_CHUNK_MAGIC) break;
    offsets.push_back(at);
  }
  std::vector<CutChunk> cut;
  uint64_t end = bytes_;
  for (uint64_t data = 0; data < bytes && !offsets.empty(); offsets.pop_back()) {
    CutChunk& taken = cut.emplace_back();
    if (!read_at(offsets.back(), &taken.header, sizeof taken.header)) return {};
    taken.payload.resize(taken.header.size);
    if (!read_at(offsets.back() + sizeof taken.header, taken.payload.data(),
                 taken.payload.size())) {
      return {};
    }
    end = offsets.back();
    if (taken.is_data()) data += sizeof taken.header + taken.header.size;
  }
  if (cut.empty() || ftruncate(fd_, start_ + static_cast<off_t>(end)) != 0) return {};
  lseek(fd_, start_ + static_cast<off_t>(end), SEEK_SET);
  bytes_ = end;
  sequence_ = cut.back().header.sequence;
  if (index_) index_->cut(sequence_);
  error_ = 0;
  std::reverse(cut.begin(), cut.end());
  return cut;
}

bool TraceFile::CutChunk::is_data() const {
  arctrace_block_header block{};
  if (header.kind != ARCTRACE_CHUNK_BLOCK || payload.size() < sizeof block) return false;
  std::memcpy(&block, payload.data(), sizeof block);
  return block.block_class != ARCTRACE_CLASS_DEFINITIONS;
}

void TraceFile::write_records(uint64_t ticks, std::span<const std::byte> records) {
  constexpr size_t kChunkMax = size_t{1} << 20;  // rule F4 allows 16 MiB
  const uint64_t bytes_before = bytes_;
  const uint32_t sequence_before = sequence_;
  while (!records.empty()) {
    size_t size = 0;
    do {
      uint32_t word0 = 0;
      std::memcpy(&word0, records.data() + size, sizeof word0);
      size += word0 & ARCTRACE_LENGTH_MASK;
    } while (size < records.size() && size < kChunkMax);
    write_chunk(ARCTRACE_CHUNK_RECORDS, 0, 0, ticks, records.first(size));
    records = records.subspan(size);
  }
  // All or none, because whoever made the records will write them again.
  if (error_ != 0 && bytes_ != bytes_before) cut_back(bytes_before, sequence_before);
}

int TraceFile::write_symbols(uint64_t ticks,
                             std::span<const std::vector<std::byte>> payloads) {
  if (directory_ < 0) return ESPIPE;
  const uint64_t bytes_before = bytes_;
  const uint32_t sequence_before = sequence_;
  for (const std::vector<std::byte>& payload : payloads) {
    write_chunk(ARCTRACE_CHUNK_SYMBOLS, 0, 0, ticks, payload);
  }
  if (error_ != 0) cut_back(bytes_before, sequence_before);
  return std::exchange(error_, 0);
}

void TraceFile::cut_back(uint64_t bytes, uint32_t sequence) {
  if (start_ < 0) return;
  const int64_t end = start_ + static_cast<int64_t>(bytes);
  if (ftruncate(fd_, end) != 0) return;
  lseek(fd_, end, SEEK_SET);
  bytes_ = bytes;
  sequence_ = sequence;
  if (index_) index_->cut(sequence_);
}

}  // namespace arctrace
