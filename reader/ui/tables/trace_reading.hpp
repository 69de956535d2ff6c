// Reads a trace for its tables: once as a whole, and again for the slowest calls of a
// function.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "reader/render/gap_list.hpp"
#include "reader/replay/replay.hpp"
#include "reader/symbols/symbolizer.hpp"
#include "reader/trace/gaps.hpp"
#include "reader/trace/trace.hpp"
#include "reader/ui/tables/trace_tables.hpp"

namespace arctrace::reader {

// Memory is bounded by the numbers of functions, stacks, locks and threads, whatever the
// size of the trace.
class TraceReading {
 public:
  // Called now and then while the trace is read, with the number of records so far;
  // returns false to stop.
  using Goes = std::function<bool(uint64_t records)>;
  using WantsGap = std::function<bool(const Gap& gap)>;

  static constexpr uint64_t kSlowestShown = 20;

  // All must outlive this object. `options`: those of the filters, without listeners.
  // `wants_gap`: whether a gap concerns what the filters show.
  TraceReading(Trace& trace, Symbolizer& symbolizer, ReplayOptions options,
               WantsGap wants_gap, Goes goes);
  ~TraceReading();
  TraceReading(const TraceReading&) = delete;
  TraceReading& operator=(const TraceReading&) = delete;

  // To be called once, first. Error: the trace could not be read; kCancelled: stopped.
  absl::Status read_all();
  // REQUIRES: read_all() was called.
  FinishedPass facts();
  const Replay& replay() const { return replay_; }
  uint64_t records() const { return records_; }
  // The time of the record that was read before `goes` was called, during a pass.
  int64_t time_ns() const { return time_ns_; }

  // Returns the slowest calls of a function of facts(). kCancelled: stopped.
  absl::StatusOr<SlowestOfFunction> slowest(FunctionId function);

 private:
  ReplayOptions with_listeners();
  absl::Status read(Replay& replay, const std::function<void(const Gap&)>& gap);

  Trace& trace_;
  Symbolizer& symbolizer_;
  const ReplayOptions options_;
  const WantsGap wants_gap_;
  const Goes goes_;
  TraceCalls calls_;
  Replay replay_;
  GapList gaps_;
  Summary summary_;
  uint64_t records_ = 0;  // that a pass reads
  int64_t time_ns_ = INT64_MIN;
};

}  // namespace arctrace::reader
