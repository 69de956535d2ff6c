// The calls of a trace as rows, for views and exporters that show each call whole.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "reader/analysis/tree_groups.hpp"
#include "reader/replay/listener.hpp"
#include "reader/streams/spools.hpp"

namespace arctrace::reader {

// A listener that collects the calls. The newest are in memory, the others in a temporary
// file.
class CallTable : public ReplayListener {
 public:
  // Makes the text that a row shows of an ARGUMENTS or RESULT record.
  using Describe = std::function<std::string(const Record&)>;
  // `number`: counts the calls in the order in which they were entered.
  using Visit = absl::FunctionRef<bool(uint64_t number, const InvocationRow&)>;

  static constexpr size_t kRowsInMemory = 1 << 18;

  explicit CallTable(Describe describe, size_t rows_in_memory = kRowsInMemory)
      : describe_(std::move(describe)), spool_(rows_in_memory) {}

  // REQUIRES: the replay is finished. Calls `visit` for each shown call until it returns
  // false, in the order of `sort` (kEntry, kTotal, kSelf, kName), for `limit` calls at
  // most. Returns how many calls the limit excluded. Error: rows could not be stored or
  // read back.
  absl::StatusOr<uint64_t> for_each(SortKey sort, uint64_t limit,
                                    const Functions& functions, Visit visit);

  // Returns the text that `describe` made of the call's arguments or of its result; empty
  // if none was recorded.
  std::string args(const InvocationRow& row) {
    return texts_.read(row.text_offset, row.args_size);
  }
  std::string retval(const InvocationRow& row) {
    return texts_.read(row.text_offset + row.args_size, row.retval_size);
  }

  uint64_t frame_opened(const FrameInfo& frame) override;
  void frame_closed(const FrameInfo& frame, uint64_t token, bool shown) override;
  void frame_adopted(const FrameInfo& frame) override;
  void point(const PointInfo& /*point*/) override {}
  void args(const ArgsInfo& args) override;

 private:
  // A call that the replay tells later than it started: it was entered before tracing
  // began, or before the time range. There is a bounded number for each thread.
  struct Early {
    InvocationRow row;
    int64_t rank = 0;  // among those of one start
  };
  struct Texts {
    std::string args, retval;
  };

  static InvocationRow row_of(const FrameInfo& frame, InvocationRow::State state);
  absl::Status in_entry_order(Visit visit);
  absl::Status in_sorted_order(SortKey sort, uint64_t limit, const Functions& functions,
                               Visit visit);

  const Describe describe_;
  RowSpool spool_;
  absl::flat_hash_map<uint64_t, Texts> open_texts_;  // by token
  TextSpool texts_;
  std::vector<Early> early_;
};

}  // namespace arctrace::reader
