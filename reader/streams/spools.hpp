// Temporary files for data that could be too large for memory: bytes, texts, and rows.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reader/replay/call_tree.hpp"
#include "reader/replay/functions.hpp"
#include "reader/trace/record.hpp"

namespace arctrace::reader {

// The directory of temporary files: $TMPDIR, or /tmp.
std::string temporary_directory();

// A temporary file without a name, which vanishes with its object. It is made in
// temporary_directory() at the first write. After an error, mostly for lack of disk
// space, nothing more is written.
class NamelessFile {
 public:
  NamelessFile() = default;
  NamelessFile(const NamelessFile&) = delete;
  NamelessFile& operator=(const NamelessFile&) = delete;
  ~NamelessFile();

  void write_at(uint64_t offset, const void* from, size_t size);
  // Returns how many bytes were read, which is less than `size` at the end of the file.
  size_t read_at(uint64_t offset, void* to, size_t size);

  const absl::Status& status() const { return status_; }
  void fail(absl::Status status) { status_ = std::move(status); }

 private:
  int file_ = -1;
  absl::Status status_;
};

// Texts that are added once and read back by their offset. There may be too many for
// memory: the older ones are in a temporary file.
class TextSpool {
 public:
  // The newest `bytes_in_memory` at most are in memory.
  explicit TextSpool(size_t bytes_in_memory = size_t{16} << 20)
      : bytes_in_memory_(bytes_in_memory) {}

  // Returns the offset of `text`; 0 if it is empty.
  uint64_t add(std::string_view text);

  // Returns the text of `size` bytes at `offset`; it is shorter if it could not be
  // stored.
  std::string read(uint64_t offset, size_t size);

  const absl::Status& status() const { return file_.status(); }

 private:
  const size_t bytes_in_memory_;
  std::string recent_;  // the text after the part on disk
  uint64_t on_disk_ = 0;
  NamelessFile file_;
};

// The row of one call.
struct InvocationRow {
  enum class State : uint8_t { kOpen, kShown, kDropped };

  int64_t start_ns = 0, stop_ns = 0;
  uint64_t self_ns = 0, duration_ns = 0;  // on the report's clock
  CpuTime cpu;
  ThreadIndex thread = kNoIndex;
  FunctionId function = kUnknownFunction;
  uint16_t flags = 0;  // enum FrameFlag
  State state = State::kOpen;
  // The texts of its arguments and of its result, one after the other in a TextSpool.
  uint32_t args_size = 0, retval_size = 0;
  uint64_t text_offset = 0;
};

// Rows that are added in one order and completed in another. There may be too many for
// memory: the older ones are in a temporary file. If the file fails, rows are lost, and
// for_each() returns the error from then on.
class RowSpool {
 public:
  explicit RowSpool(size_t rows_in_memory);
  RowSpool(const RowSpool&) = delete;
  RowSpool& operator=(const RowSpool&) = delete;

  // Returns the index of the row, which counts from 0.
  uint64_t add(const InvocationRow& row);
  void replace(uint64_t index, const InvocationRow& row);
  uint64_t size() const { return on_disk_ + rows_.size(); }

  // Calls `visit` for each row in the order of their indices until it returns false.
  absl::Status for_each(absl::FunctionRef<bool(const InvocationRow&)> visit);

 private:
  void spill();
  void write_at(uint64_t index, const InvocationRow* rows, size_t count);

  const size_t rows_in_memory_;
  std::vector<InvocationRow> rows_;  // those after the ones on disk
  uint64_t on_disk_ = 0;
  NamelessFile file_;
};

}  // namespace arctrace::reader
