// Reads a trace, or a range of it, through a replay: the loop that reports, exporters,
// screens and the library share.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>

#include "reader/replay/replay.hpp"
#include "reader/trace/gaps.hpp"
#include "reader/trace/trace.hpp"

namespace arctrace::reader {

// Returns options for a replay of this trace, which must outlive it; filter, listeners
// and costs are to be added.
ReplayOptions replay_options_of(const Trace& trace);

struct ReadSoFar {
  uint64_t records;
  uint64_t bytes;   // of these records, without what surrounds them
  int64_t time_ns;  // of the last one
};

// Returns the bytes of a record, for ReadSoFar.
uint64_t bytes_of(const Record& record, const Session& session);

// Functions that watch a run. Each may be empty.
struct ReplayWatch {
  // Gets each record, when the replay has had it.
  std::function<void(const Record&)> record;
  // Gets each gap, in the order in which gaps are found: those that only the trace's sums
  // tell come last.
  std::function<void(const Gap&)> gap;
  // Is asked once every some thousand records whether to go on.
  std::function<bool(const ReadSoFar&)> goes;
  // Whether the replay of a run that was stopped is finished, too, with the records so
  // far.
  bool finishes_when_stopped = false;
};

enum class Reading : uint8_t {
  kHere,        // in the calling thread
  kConcurrent,  // read_concurrently()
};

struct ReplayEnd {
  bool is_stopped;   // goes() returned false
  uint64_t records;  // that were read
};

// Adds the trace's records to the replay, and finishes it. Error: the trace can't be read
// any more.
absl::StatusOr<ReplayEnd> run_replay(Trace& trace, Replay& replay,
                                     const ReplayWatch& watch,
                                     Reading reading = Reading::kHere);

}  // namespace arctrace::reader
