// Reads the page's data for ranges of a trace's time, and retains the last ones.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <list>
#include <vector>

#include "reader/replay/replay.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/trace/trace.hpp"
#include "reader/trace/trace_files.hpp"
#include "reader/ui/model/page_json.hpp"
#include "reader/ui/model/page_parts.hpp"

namespace arctrace::reader {

// Returns the numbers that the functions of another replay have on the page, found by
// their names.
std::vector<FunctionId> ids_on_page(const Functions& functions, Functions& page);

// The data that was read for a range.
class TraceRange {
 public:
  TraceRange(const Trace& trace, Symbolizer& symbolizer, Times times, size_t max_items);

  bool is_of(Times times) const {
    return times_.from_ns == times.from_ns && times_.until_ns == times.until_ns;
  }
  bool has(Times times) const {
    return times_.from_ns <= times.from_ns && times_.until_ns >= times.until_ns;
  }
  Replay& replay() { return replay_; }
  PageParts& parts() { return parts_; }
  const Timeline& timeline() const { return parts_.timeline(); }
  // The numbers on the page of the functions of its replay.
  const std::vector<FunctionId>& ids() const { return ids_; }
  void take_ids(Functions& page);

 private:
  const Times times_;
  PageParts parts_;
  Replay replay_;
  std::vector<FunctionId> ids_;
};

// Not thread-safe. Memory is bounded: by kKeptMax ranges of each kind, each with up to
// kItemsMax stretches, and the functions, stacks and threads of its time.
class TraceRanges {
 public:
  static constexpr size_t kItemsMax = size_t{1} << 20;
  static constexpr size_t kKeptMax = 3;

  // All must outlive this object. `trace`: has the definitions. `files`: ranges are read
  // from these, each by a Trace that is opened for it; null: `trace` itself is read, as a
  // whole each time.
  TraceRanges(Trace& trace, const TraceFiles* files, const SymbolOptions& symbols,
              TraceFiles::Stops stops);

  // Gives the replay the records that it needs for the range, and finishes it. Records
  // after the range are needed, too: if a thread wrote nothing in the range, they tell
  // its frames. Errors: the trace cannot be read, or its files have changed; kCancelled:
  // it was stopped.
  absl::Status read(const TimeRange& range, Replay& replay);

  // Returns the sums of the range, which are those of a report. Errors: as read().
  absl::StatusOr<TraceRange*> sums_of(Times times, Functions& page);
  // Returns the time line of a range that includes `needed`, in which stretches of
  // pixel_ns or more are exact: a retained one, else `wanted`, which is read. Errors: as
  // read().
  absl::StatusOr<TraceRange*> detail_of(Times needed, Times wanted, uint64_t pixel_ns,
                                        Functions& page);
  // Gives the functions of all retained ranges their numbers on another page.
  void take_ids(Functions& page);

  const Trace& trace() const { return trace_; }
  Symbolizer& symbolizer() { return symbolizer_; }

 private:
  using Kept = std::list<TraceRange>;  // the latest first

  absl::StatusOr<TraceRange*> read_into(Kept& kept, Times times, size_t max_items,
                                        Functions& page);

  Trace& trace_;
  const TraceFiles* const files_;
  const TraceFiles::Stops stops_;
  Symbolizer symbolizer_;
  Kept sums_, details_;
};

}  // namespace arctrace::reader
