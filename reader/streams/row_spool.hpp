// Rows that are added in one order and completed in another. There may be more of them
// than memory should hold: the older ones are in a temporary file.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reader/replay/cpu_time.hpp"
#include "reader/replay/functions.hpp"
#include "reader/streams/nameless_file.hpp"
#include "reader/trace/record.hpp"

namespace arctrace::reader {

// One call.
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

// After an error of the file rows are lost; for_each() returns it from then on.
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
