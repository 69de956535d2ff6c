#include "src/recorder/file/trace_file.hpp"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace arctrace {

absl::StatusOr<TraceFile> TraceFile::create(const std::string& path) {
  if (path == "-") {
    const int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (fd < 0) return absl::ErrnoToStatus(errno, "standard output");
    return TraceFile(fd, path, "");
  }
  struct stat status {};
  const bool exists = stat(path.c_str(), &status) == 0;
  const bool in_place = exists && !S_ISREG(status.st_mode);  // a FIFO, /dev/null ...
  const std::string name = in_place ? path : absl::StrCat(path, ".new-", getpid());
  // Removed first and created with O_EXCL, because in a directory that others may write
  // to the name could be planted.
  if (!in_place) unlink(name.c_str());
  // Readable, because what is cut off the end of a file on a full disk is needed.
  const int flags = in_place ? O_WRONLY : O_RDWR | O_CREAT | O_EXCL;
  const int fd = open(name.c_str(), flags | O_CLOEXEC, 0600);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("creating ", path));
  return TraceFile(fd, path, in_place ? "" : name);
}

absl::Status TraceFile::publish() {
  return temporary_.empty() ? absl::OkStatus() : publish_as(path_);
}

absl::Status TraceFile::publish_as(const std::string& path) {
  const std::string old = absl::StrCat(path, ".old");
  if (rename(path.c_str(), old.c_str()) != 0 && errno != ENOENT) {
    return absl::ErrnoToStatus(errno, absl::StrCat("renaming ", path, " to ", old));
  }
  const std::string& from = temporary_.empty() ? path_ : temporary_;
  if (rename(from.c_str(), path.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("creating ", path));
  }
  temporary_.clear();
  path_ = path;
  return absl::OkStatus();
}

TraceFile::TraceFile(int fd, std::string path, std::string temporary)
    : fd_(fd),
      start_(lseek(fd, 0, SEEK_CUR)),
      path_(std::move(path)),
      temporary_(std::move(temporary)) {}

TraceFile::TraceFile(TraceFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      start_(other.start_),
      path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, std::string())),
      bytes_(other.bytes_),
      sequence_(other.sequence_),
      error_(other.error_) {}

TraceFile& TraceFile::operator=(TraceFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(start_, other.start_);
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(bytes_, other.bytes_);
  std::swap(sequence_, other.sequence_);
  std::swap(error_, other.error_);
  return *this;
}

TraceFile::~TraceFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void TraceFile::append(std::span<iovec> parts) {
  uint64_t size = 0;
  for (const iovec& part : parts) size += part.iov_len;
  while (!parts.empty()) {
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
  std::byte page[ARCTRACE_HEADER_SIZE] = {};
  arctrace_session_header copy = header;
  copy.magic = ARCTRACE_FILE_MAGIC;
  std::memcpy(page, &copy, sizeof copy);
  iovec parts[] = {{page, sizeof page}};
  append(parts);
}

void TraceFile::write_chunk(arctrace_chunk_kind kind, uint16_t flags, uint32_t index,
                            uint64_t ticks, std::span<const std::byte> first,
                            std::span<const std::byte> rest) {
  if (error_ != 0) return;
  arctrace_chunk_header chunk{};
  chunk.magic = ARCTRACE_CHUNK_MAGIC;
  chunk.kind = static_cast<uint16_t>(kind);
  chunk.flags = flags;
  chunk.size = static_cast<uint32_t>(first.size() + rest.size());
  chunk.index = index;
  chunk.sequence = sequence_;
  chunk.ticks = ticks;
  iovec parts[] = {{&chunk, sizeof chunk},
                   {const_cast<std::byte*>(first.data()), first.size()},
                   {const_cast<std::byte*>(rest.data()), rest.size()}};
  append(parts);
  if (error_ == 0) ++sequence_;
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
}

}  // namespace arctrace
