// The critical path: from the end of a stretch of time back through each wait to the
// thread that ended it, across threads and processes.
#pragma once

#include <absl/container/btree_map.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <tuple>
#include <vector>

#include "reader/analysis/path_state.hpp"
#include "reader/replay/replay.hpp"
#include "reader/streams/schedule_log.hpp"

namespace arctrace::reader {

// The end at which a walk begins, and how far back it goes.
struct PathEnd {
  ThreadIndex thread = kNoIndex;
  int64_t start_ns = 0, stop_ns = 0;
};

// A stretch of time in which the path is in one thread.
struct PathPiece {
  ThreadIndex thread = kNoIndex;
  int64_t start_ns = 0, stop_ns = 0;
};

// The time that the path was in a thread, in one state and at one node of its calls; and
// the piece of the schedule in which this was the longest.
struct PathSum {
  uint64_t time_ns = 0;
  uint64_t longest_ns = 0;
  int64_t start_ns = 0, stop_ns = 0;  // of that piece

  void add(uint64_t more_ns, int64_t from_ns, int64_t until_ns);
};

// The critical path of a stretch. Each nanosecond from end.start_ns to end.stop_ns is in
// one sum, and in one piece.
struct CriticalPath {
  PathEnd end;
  absl::btree_map<std::tuple<ThreadIndex, NodeIndex, PathState>, PathSum> sums;
  std::vector<PathPiece> pieces;  // the last one first

  uint64_t wall_ns() const {
    return static_cast<uint64_t>(end.stop_ns) - static_cast<uint64_t>(end.start_ns);
  }
  std::array<uint64_t, kPathStates> state_sums() const;
};

// REQUIRES: the replay is finished. Returns the stretch from the first begin to the end
// of the thread that ended last, of those whose processes are recorded; nullopt if
// nothing was logged.
std::optional<PathEnd> whole_stretch(ScheduleLog& log, const Replay& replay);

// Walks back from `end`. Takes time for each piece of the log at most once.
CriticalPath critical_path(ScheduleLog& log, const Replay& replay, const PathEnd& end);

}  // namespace arctrace::reader
