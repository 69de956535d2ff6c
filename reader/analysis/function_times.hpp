// How the times of a function's calls are distributed.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "reader/analysis/duration_histogram.hpp"
#include "reader/analysis/tree_groups.hpp"
#include "reader/replay/listener.hpp"

namespace arctrace::reader {

// Whether the time of a call is known: its entry and its exit were seen, both within the
// time range. Calls that a jump or an exception left have ended.
bool is_timed(uint16_t flags);

// A listener that collects the times of calls by function, for each group of a report. A
// call inside another one of its function counts, too. Memory is bounded by the number of
// functions in each group: at most 15 KiB for one.
class FunctionTimes : public ReplayListener {
 public:
  // `definitions` must outlive this object.
  FunctionTimes(const Definitions& definitions, Grouping grouping)
      : definitions_(definitions), grouping_(grouping) {}

  // The times, on the report's clock, of the shown calls of `function` in a group; null
  // if no call is timed.
  const DurationHistogram* find(const TreeGroup& group, FunctionId function) const;

  uint64_t frame_opened(const FrameInfo& /*frame*/) override { return 0; }
  void frame_closed(const FrameInfo& frame, uint64_t token, bool shown) override;
  void frame_adopted(const FrameInfo& /*frame*/) override {}
  void point(const PointInfo& /*point*/) override {}

 private:
  using ByFunction = std::vector<std::unique_ptr<DurationHistogram>>;

  ByFunction& group_of(ThreadIndex thread);

  const Definitions& definitions_;
  const Grouping grouping_;
  absl::flat_hash_map<uint32_t, std::unique_ptr<ByFunction>> groups_;
  // The group of the thread that was asked for last.
  ThreadIndex recent_thread_ = kNoIndex;
  ByFunction* recent_ = nullptr;
};

}  // namespace arctrace::reader
