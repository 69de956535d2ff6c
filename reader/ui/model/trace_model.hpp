// A trace that is looked at: what was collected in one pass when it was opened, and what
// is read again for a range of time when somebody asks for it.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "reader/render/gap_list.hpp"
#include "reader/render/record_describer.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/trace/gaps.hpp"
#include "reader/trace/trace.hpp"
#include "reader/ui/model/page_json.hpp"
#include "reader/ui/model/page_parts.hpp"

namespace arctrace::reader {

// Answers in JSON. Memory is bounded, whatever the size of the trace: by kItemsMax
// stretches of the time line for the whole and for each of the ranges that are kept, and
// by the numbers of functions, stacks and threads. Not thread-safe.
class TraceModel {
 public:
  // A second of a pass is some millions of records.
  static constexpr size_t kItemsMax = size_t{3} << 20;
  static constexpr size_t kRangeItemsMax = size_t{1} << 20;
  static constexpr size_t kRangesMax = 3;

  // Called now and then during a pass, with the number of records so far; false: stop.
  using Goes = std::function<bool(uint64_t records)>;

  // Both must outlive this object.
  TraceModel(Trace& trace, Symbolizer& symbolizer, Goes goes);
  ~TraceModel();
  TraceModel(const TraceModel&) = delete;
  TraceModel& operator=(const TraceModel&) = delete;

  // The pass over the whole trace. To be called once, first. Error: the trace could not
  // be read, or the pass was stopped.
  absl::Status read_all();

  // What the page begins with: write_facts_json(), write_lanes_json(),
  // write_names_json().
  std::string summary() const;
  // Object with from_ns, until_ns, pixel_ns (of the crowds), is_exact, and lanes: an
  // array of [number, rows]. `pixel_ns` is at least 1. If it is shorter than what is kept
  // of the whole, `exact` says whether the range may be read again.
  absl::StatusOr<std::string> timeline(Times times, uint64_t pixel_ns,
                                       const std::vector<uint32_t>& lanes, bool exact);
  // Of calls in a range of time; the whole if it is not given.
  absl::StatusOr<std::string> totals(const Times* times);
  absl::StatusOr<std::string> flame(const Times* times, Grouping grouping);
  absl::StatusOr<std::string> locks(const Times* times);
  // kNotFound: the trace does not know what woke threads.
  absl::StatusOr<std::string> critical_path(const Times* times);
  // The call of a lane at a level that began at `start_ns`. kNotFound: there is none.
  absl::StatusOr<std::string> call(uint32_t lane, uint32_t level, int64_t start_ns,
                                   int64_t stop_ns);
  // The first calls whose args or retval contain `text`, in order of their ends.
  absl::StatusOr<std::string> search(const std::string& text);

  // Of a function of the page: file, line, first, and text, the lines from `first` on if
  // the file is on this machine. An empty object: its debug data does not tell.
  // kNotFound: there is no such function.
  absl::StatusOr<std::string> source(FunctionId function);

  Times times() const { return times_; }

 private:
  struct Range;

  ReplayOptions replay_options() const;
  absl::Status read_records(int64_t until_ns,
                            const std::function<void(const Record&)>& to);
  absl::StatusOr<Range*> sums_of(Times times);
  absl::StatusOr<Range*> detail_of(Times times, uint64_t pixel_ns);
  using WriteView = absl::Status (PageParts::*)(Replay& replay, JsonWriter& json);
  absl::StatusOr<std::string> view_of(const Times* times, WriteView write_view);
  std::vector<FunctionId> ids_of(const Functions& functions);
  PageFacts facts() const;
  TimeRow exact_row(const Lane& lane, uint32_t level, const Range& detail, Times times,
                    uint64_t pixel_ns) const;

  Trace& trace_;
  Symbolizer& symbolizer_;
  const Goes goes_;
  const std::unique_ptr<PageParts> parts_;
  const std::unique_ptr<Replay> replay_;
  GapList gaps_;
  Times times_;
  std::list<Range> sums_, details_;  // the latest first
};

}  // namespace arctrace::reader
