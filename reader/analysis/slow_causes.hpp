// Why calls of a function are slow: on which paths, and in which states, its slowest
// calls spend the time that its median calls do not need.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "reader/analysis/path_state.hpp"
#include "reader/replay/listener.hpp"

namespace arctrace::reader {

// The time on one path in one state, of all slow and of all median calls.
struct SlowCause {
  std::vector<FunctionId> path;  // below the function, outermost first; empty: itself
  PathState state = PathState::kRunning;
  uint64_t slow_ns = 0, median_ns = 0;
};

// A function's slow and median calls. The causes' times add up to those of the calls.
struct SlowComparison {
  FunctionId function = kUnknownFunction;
  uint64_t calls = 0;  // that were seen as a whole
  uint64_t slow_calls = 0, slow_ns = 0;
  uint64_t median_calls = 0, median_ns = 0;
  std::vector<SlowCause> causes;

  // How much more of the cause a slow call has than a median one, on average.
  double more_ns(const SlowCause& cause) const {
    return static_cast<double>(cause.slow_ns) / static_cast<double>(slow_calls) -
           static_cast<double>(cause.median_ns) / static_cast<double>(median_calls);
  }
};

// Tracks the calls of some functions. Durations are those of the wall clock. The slow
// calls are the longest 1 %, as far as they took half as long as the longest: what only
// that one did would be little of many shorter ones' average. The median calls are those
// in the median's bucket of a DurationHistogram, which are as long to within 3 %.
//
// Memory is bounded by the number of functions, and for each by the paths below it, times
// 1,000 slow calls and the buckets.
class SlowCauses : public ScheduleListener {
 public:
  static constexpr uint64_t kCallsMin = 10;        // fewer are not compared
  static constexpr uint64_t kSlowCallsMax = 1000;  // more are not needed
  static constexpr uint32_t kPathDepthMax = 32;    // what is deeper counts there

  // To be called before the first call; `replay` must outlive this object.
  void set_replay(const Replay& replay) { replay_ = &replay; }

  // To be called when a call of such a function begins, and ends. `shown`: it is to be
  // compared.
  void call_began(const FrameInfo& frame);
  void call_ended(const FrameInfo& frame, bool shown);

  void time_passed(const PathTime& time) override;
  void state_ended(const StateInfo& state) override;

  // The comparison of each function that has enough calls; the function with the longest
  // slow calls comes first. The causes that make the largest difference come first.
  std::vector<SlowComparison> comparisons() const;

 private:
  using PathIndex = uint32_t;  // in paths_
  // By path and state.
  using Shares = absl::flat_hash_map<std::pair<PathIndex, PathState>, uint64_t>;

  struct Path {
    PathIndex parent;
    FunctionId function;
    uint32_t depth;
  };
  // Time in which a thread did not run, until it is known why.
  struct Pending {
    NodeIndex node;
    PathIndex path;
    uint64_t time_ns;
  };
  // A call that has not ended.
  struct Open {
    NodeIndex node = kNoNode;
    uint32_t coroutine = 0;
    Shares shares;
    std::vector<Pending> pending;
  };
  struct Ranked {
    uint64_t wall_ns = 0;
    uint64_t number = 0;  // counts the calls as they end
    Shares shares;
  };
  struct Bucket {
    uint64_t calls = 0, wall_ns = 0;
    Shares shares;
  };
  struct Calls {
    uint64_t count = 0;
    std::vector<Ranked> slowest;  // a heap, the fastest of them at the front
    absl::btree_map<size_t, Bucket> buckets;
  };

  static bool is_slower(const Ranked& a, const Ranked& b);
  PathIndex extended(PathIndex path, FunctionId function);
  PathIndex path_below(NodeIndex node, NodeIndex call);
  PathIndex joined(PathIndex outer, PathIndex inner);
  static void assign_pending(Open& open, PathState state);
  void add(FunctionId function, uint64_t wall_ns, Shares shares);
  std::vector<FunctionId> functions_of(PathIndex path) const;
  SlowComparison comparison(FunctionId function, Calls calls) const;

  const Replay* replay_ = nullptr;
  std::vector<std::vector<Open>> open_;  // by ThreadIndex, innermost last
  std::vector<Path> paths_ = {{0, kRootFunction, 0}};
  absl::flat_hash_map<std::pair<PathIndex, FunctionId>, PathIndex> path_index_;
  absl::flat_hash_map<std::pair<PathIndex, PathIndex>, PathIndex> joined_;
  // The path of a node in a call: by the call, which is the innermost one around the
  // node.
  absl::flat_hash_map<std::pair<NodeIndex, NodeIndex>, PathIndex> path_of_node_;
  absl::flat_hash_map<FunctionId, Calls> functions_;
};

}  // namespace arctrace::reader
