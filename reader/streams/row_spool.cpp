#include "reader/streams/row_spool.hpp"

#include <algorithm>
#include <type_traits>

namespace arctrace::reader {
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

// The older half goes to disk: mostly calls that are complete.
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
