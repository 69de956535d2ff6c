#include "reader/streams/spools.hpp"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>

namespace arctrace::reader {
namespace {

// Opens a file that vanishes with its descriptor; returns -1 with errno.
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

uint64_t TextSpool::add(std::string_view text) {
  if (text.empty()) return 0;
  if (!recent_.empty() && recent_.size() + text.size() > bytes_in_memory_) {
    file_.write_at(on_disk_, recent_.data(), recent_.size());
    on_disk_ += recent_.size();
    recent_.clear();
  }
  recent_ += text;
  return on_disk_ + recent_.size() - text.size();
}

std::string TextSpool::read(uint64_t offset, size_t size) {
  if (offset >= on_disk_) {
    const uint64_t at = offset - on_disk_;
    return at > recent_.size() ? std::string() : recent_.substr(at, size);
  }
  std::string text(size, '\0');
  text.resize(file_.read_at(offset, text.data(), size));
  return text;
}

namespace {

static_assert(std::is_trivially_copyable_v<InvocationRow>);

}  // namespace

RowSpool::RowSpool(size_t rows_in_memory)
    : rows_in_memory_(std::max<size_t>(rows_in_memory, 2)) {}

uint64_t RowSpool::add(const InvocationRow& row) {
  if (rows_.size() >= rows_in_memory_) spill();
  rows_.push_back(row);
  return size() - 1;
}

void RowSpool::replace(uint64_t index, const InvocationRow& row) {
  if (index >= on_disk_) {
    rows_[static_cast<size_t>(index - on_disk_)] = row;
  } else {
    write_at(index, &row, 1);
  }
}

// Moves the older half to disk: these are mostly calls that are complete.
void RowSpool::spill() {
  const size_t count = rows_.size() / 2;
  write_at(on_disk_, rows_.data(), count);
  rows_.erase(rows_.begin(), rows_.begin() + static_cast<std::ptrdiff_t>(count));
  on_disk_ += count;
}

void RowSpool::write_at(uint64_t index, const InvocationRow* rows, size_t count) {
  file_.write_at(index * sizeof(InvocationRow), rows, count * sizeof(InvocationRow));
}

absl::Status RowSpool::for_each(absl::FunctionRef<bool(const InvocationRow&)> visit) {
  std::vector<InvocationRow> piece(std::min<uint64_t>(on_disk_, 4096));
  for (uint64_t index = 0; file_.status().ok() && index < on_disk_;) {
    const auto count = std::min<uint64_t>(piece.size(), on_disk_ - index);
    const size_t rows =
        file_.read_at(index * sizeof(InvocationRow), piece.data(),
                      static_cast<size_t>(count) * sizeof(InvocationRow)) /
        sizeof(InvocationRow);
    if (rows == 0) {
      file_.fail(absl::UnavailableError("cannot read rows back from the temporary file"));
      break;
    }
    for (size_t i = 0; i < rows; ++i) {
      if (!visit(piece[i])) return file_.status();
    }
    index += rows;
  }
  if (!file_.status().ok()) return file_.status();
  for (const InvocationRow& row : rows_) {
    if (!visit(row)) break;
  }
  return file_.status();
}

}  // namespace arctrace::reader
