// One row for each call.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "reader/render/describe_record.hpp"
#include "reader/render/json_writer.hpp"
#include "reader/render/row_spool.hpp"
#include "reader/render/text_spool.hpp"
#include "reader/render/view_options.hpp"
#include "reader/render/write_text.hpp"

namespace arctrace::reader {

// A listener that collects the calls, and writes them at the end: in the order in which
// they were entered, unless they are sorted by cum (their duration), base or name.
class InvocationsView : public ReplayListener {
 public:
  static constexpr size_t kRowsInMemory = 1 << 18;

  // `describe` makes text of arguments and results, or members of JSON if `json`.
  InvocationsView(const ViewOptions& options, DescribeRecord describe, bool json,
                  size_t rows_in_memory = kRowsInMemory)
      : options_(options),
        describe_(std::move(describe)),
        json_(json),
        spool_(rows_in_memory) {}

  // Columns: number, start, stop, delta, base, process/thread, name. Error: rows could
  // not be kept.
  absl::Status write_text(Replay& replay, const WriteText& write);

  // Member "invocations" of the object that is open: an array.
  absl::Status write_json(Replay& replay, JsonWriter& json);

  uint64_t frame_opened(const FrameInfo& frame) override;
  void frame_closed(const FrameInfo& frame, uint64_t token, bool shown) override;
  void frame_adopted(const FrameInfo& frame) override;
  void point(const PointInfo& /*point*/) override {}
  void args(const ArgsInfo& args) override;

 private:
  // A call that is told of later than it started: it was entered before tracing began,
  // or before the time range. There is a bounded number for each thread.
  struct Early {
    InvocationRow row;
    int64_t rank = 0;  // among those of one start
  };
  using Visit = absl::FunctionRef<bool(uint64_t number, const InvocationRow&)>;

  static InvocationRow row_of(const FrameInfo& frame, InvocationRow::State state);
  absl::Status in_entry_order(Visit visit);
  absl::Status in_sorted_order(const Functions& functions, Visit visit);
  // Returns how many rows the limit leaves out.
  absl::StatusOr<uint64_t> for_rows(const Functions& functions, Visit visit);

  const ViewOptions& options_;
  const DescribeRecord describe_;
  const bool json_;
  RowSpool spool_;
  struct Texts {
    std::string arguments, result;
  };
  absl::flat_hash_map<uint64_t, Texts> open_texts_;  // by token
  TextSpool texts_;
  std::vector<Early> early_;
};

}  // namespace arctrace::reader
