#include "reader/views/row_spool.hpp"

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

static_assert(std::is_trivially_copyable_v<InvocationRow>);

std::string temporary_folder() {
  const char* folder = std::getenv("TMPDIR");
  return folder != nullptr && *folder != '\0' ? folder : "/tmp";
}

// A file that vanishes with its descriptor; -1 with errno.
int open_nameless(const std::string& folder) {
  std::string path = folder + "/arctrace-rows-XXXXXX";
  const int file = ::mkostemp(path.data(), O_CLOEXEC);
  if (file >= 0) ::unlink(path.c_str());
  return file;
}

}  // namespace

RowSpool::RowSpool(size_t rows_in_memory)
    : rows_in_memory_(std::max<size_t>(rows_in_memory, 2)) {}

RowSpool::~RowSpool() {
  if (file_ >= 0) ::close(file_);
}

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

// The older half goes to disk: mostly calls that are complete.
void RowSpool::spill() {
  const size_t count = rows_.size() / 2;
  write_at(on_disk_, rows_.data(), count);
  rows_.erase(rows_.begin(), rows_.begin() + static_cast<std::ptrdiff_t>(count));
  on_disk_ += count;
}

bool RowSpool::write_at(uint64_t index, const InvocationRow* rows, size_t count) {
  if (!status_.ok()) return false;
  const std::string folder = temporary_folder();
  const auto fail = [&] {
    status_ = absl::UnavailableError(
        absl::StrCat("cannot keep rows in ", folder, ": ", std::strerror(errno)));
    return false;
  };
  if (file_ < 0 && (file_ = open_nameless(folder)) < 0) return fail();
  const char* from = reinterpret_cast<const char*>(rows);
  size_t left = count * sizeof(InvocationRow);
  auto offset = static_cast<off_t>(index * sizeof(InvocationRow));
  while (left > 0) {
    const ssize_t written = ::pwrite(file_, from, left, offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return fail();
    from += written;
    offset += written;
    left -= static_cast<size_t>(written);
  }
  return true;
}

absl::Status RowSpool::for_each(absl::FunctionRef<bool(const InvocationRow&)> visit) {
  std::vector<InvocationRow> piece(std::min<uint64_t>(on_disk_, 4096));
  for (uint64_t index = 0; status_.ok() && index < on_disk_;) {
    const auto count = std::min<uint64_t>(piece.size(), on_disk_ - index);
    const ssize_t got =
        ::pread(file_, piece.data(), static_cast<size_t>(count) * sizeof(InvocationRow),
                static_cast<off_t>(index * sizeof(InvocationRow)));
    if (got < 0 && errno == EINTR) continue;
    const auto rows =
        static_cast<size_t>(std::max<ssize_t>(got, 0)) / sizeof(InvocationRow);
    if (rows == 0) {
      status_ = absl::UnavailableError("cannot read rows back from the temporary file");
      break;
    }
    for (size_t i = 0; i < rows; ++i) {
      if (!visit(piece[i])) return status_;
    }
    index += rows;
  }
  if (!status_.ok()) return status_;
  for (const InvocationRow& row : rows_) {
    if (!visit(row)) break;
  }
  return status_;
}

}  // namespace arctrace::reader
