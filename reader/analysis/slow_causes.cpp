#include "reader/analysis/slow_causes.hpp"

#include <algorithm>
#include <tuple>

#include "reader/analysis/function_times.hpp"

namespace arctrace::reader {

bool SlowCauses::is_slower(const Ranked& a, const Ranked& b) {
  return a.wall_ns != b.wall_ns ? a.wall_ns > b.wall_ns : a.number < b.number;
}

void SlowCauses::call_began(const FrameInfo& frame) {
  if (frame.thread >= open_.size()) open_.resize(size_t{frame.thread} + 1);
  Open& open = open_[frame.thread].emplace_back();
  open.node = frame.node;
  open.coroutine = frame.coroutine;
}

// A stretch of time is added to the innermost call only; when that call ends, the call
// around it gets the time, too.
void SlowCauses::call_ended(const FrameInfo& frame, bool shown) {
  std::vector<Open>& stack = open_[frame.thread];
  const auto found = std::find_if(stack.rbegin(), stack.rend(), [&](const Open& open) {
    return open.node == frame.node && open.coroutine == frame.coroutine;
  });
  if (found == stack.rend()) return;
  Open open = std::move(*found);
  const auto around = std::find_if(found + 1, stack.rend(), [&](const Open& other) {
    return other.coroutine == frame.coroutine;
  });
  assign_pending(open, PathState::kNotKnown);
  if (around != stack.rend()) {
    const PathIndex outer = path_below(open.node, around->node);
    for (const auto& [key, time_ns] : open.shares) {
      around->shares[{joined(outer, key.first), key.second}] += time_ns;
    }
  }
  stack.erase(std::next(found).base());
  if (!shown || frame.count > 1 || !is_timed(frame.flags)) return;
  add(frame.function, frame.cpu.cpu_ns + frame.cpu.off_ns + frame.cpu.unknown_ns,
      std::move(open.shares));
}

void SlowCauses::time_passed(const PathTime& time) {
  if (time.thread >= open_.size()) return;
  // The tracer's own work is no part of the time of a call.
  const FunctionId own_work = replay_->functions().own_work();
  if (own_work != kRootFunction && replay_->tree()[time.node].function == own_work) {
    return;
  }
  std::vector<Open>& stack = open_[time.thread];
  const auto open = std::find_if(stack.rbegin(), stack.rend(), [&](const Open& call) {
    return call.coroutine == time.coroutine;
  });
  if (open == stack.rend()) return;
  const uint64_t passed =
      static_cast<uint64_t>(time.stop_ns) - static_cast<uint64_t>(time.start_ns);
  const PathIndex path = path_below(time.node, open->node);
  if (time.state != RunState::kRunning) {
    open->pending.push_back({time.node, path, passed});
    return;
  }
  const PathState state =
      replay_->has_dispatches() ? PathState::kRunning : PathState::kNotKnown;
  open->shares[{path, state}] += passed;
}

void SlowCauses::state_ended(const StateInfo& state) {
  if (state.thread >= open_.size() || state.state == RunState::kRunning) return;
  for (Open& open : open_[state.thread]) {
    if (open.pending.empty()) continue;
    PathState what =
        state.state == RunState::kNotKnown ? PathState::kNotKnown : PathState::kPreempted;
    if (state.state == RunState::kBlocked) {
      what = wait_state(*replay_, state, open.pending.back().node);
      if (what != PathState::kDisk && is_woken_by_thread(state.waker)) {
        what = PathState::kThread;
      }
    }
    assign_pending(open, what);
  }
}

void SlowCauses::assign_pending(Open& open, PathState state) {
  for (const Pending& part : open.pending) {
    open.shares[{part.path, state}] += part.time_ns;
  }
  open.pending.clear();
}

// Returns the path one function below `path`, or `path` itself at kPathDepthMax.
SlowCauses::PathIndex SlowCauses::extended(PathIndex path, FunctionId function) {
  const uint32_t depth = paths_[path].depth;
  if (depth == kPathDepthMax) return path;
  const auto [found, is_new] =
      path_index_.try_emplace({path, function}, static_cast<PathIndex>(paths_.size()));
  if (is_new) paths_.push_back({path, function, depth + 1});
  return found->second;
}

// Goes up to the nearest node whose path is known, so that deep trees take no more time.
// REQUIRES: the node is the call's, or below it.
SlowCauses::PathIndex SlowCauses::path_below(NodeIndex node, NodeIndex call) {
  const CallTree& tree = replay_->tree();
  PathIndex path = 0;
  std::vector<NodeIndex> below;
  for (NodeIndex at = node; at != call && at != kNoNode; at = tree[at].parent) {
    const auto known = path_of_node_.find({call, at});
    if (known != path_of_node_.end()) {
      path = known->second;
      break;
    }
    below.push_back(at);
  }
  for (auto at = below.rbegin(); at != below.rend(); ++at) {
    path = extended(path, tree[*at].function);
    path_of_node_[{call, *at}] = path;
  }
  return path;
}

// Returns the path `inner` in a call that is on the path `outer`.
SlowCauses::PathIndex SlowCauses::joined(PathIndex outer, PathIndex inner) {
  if (inner == 0 || paths_[outer].depth == kPathDepthMax) return outer;
  if (const auto known = joined_.find({outer, inner}); known != joined_.end()) {
    return known->second;
  }
  const Path last = paths_[inner];
  const PathIndex path = extended(joined(outer, last.parent), last.function);
  joined_[{outer, inner}] = path;
  return path;
}

void SlowCauses::add(FunctionId function, uint64_t wall_ns, Shares shares) {
  Calls& calls = functions_[function];
  Bucket& bucket = calls.buckets[DurationHistogram::bucket_of(wall_ns)];
  ++bucket.calls;
  bucket.wall_ns += wall_ns;
  for (const auto& [key, time_ns] : shares) bucket.shares[key] += time_ns;
  Ranked ranked{wall_ns, calls.count++, {}};
  if (calls.slowest.size() >= kSlowCallsMax) {
    if (!is_slower(ranked, calls.slowest.front())) return;
    std::pop_heap(calls.slowest.begin(), calls.slowest.end(), is_slower);
    calls.slowest.pop_back();
  }
  ranked.shares = std::move(shares);
  calls.slowest.push_back(std::move(ranked));
  std::push_heap(calls.slowest.begin(), calls.slowest.end(), is_slower);
}

std::vector<FunctionId> SlowCauses::functions_of(PathIndex path) const {
  std::vector<FunctionId> functions;
  for (; path != 0; path = paths_[path].parent) {
    functions.push_back(paths_[path].function);
  }
  std::reverse(functions.begin(), functions.end());
  return functions;
}

SlowComparison SlowCauses::comparison(FunctionId function, Calls calls) const {
  SlowComparison result;
  result.function = function;
  result.calls = calls.count;
  absl::btree_map<std::pair<PathIndex, PathState>, SlowCause> causes;
  std::sort_heap(calls.slowest.begin(), calls.slowest.end(), is_slower);
  const uint64_t percent =
      std::min<uint64_t>((calls.count + 99) / 100, calls.slowest.size());
  const uint64_t longest_ns = calls.slowest.front().wall_ns;
  while (result.slow_calls < percent &&
         calls.slowest[result.slow_calls].wall_ns >= longest_ns / 2) {
    ++result.slow_calls;
  }
  for (size_t i = 0; i < result.slow_calls; ++i) {
    result.slow_ns += calls.slowest[i].wall_ns;
    for (const auto& [key, time_ns] : calls.slowest[i].shares) {
      causes[key].slow_ns += time_ns;
    }
  }
  uint64_t seen = 0;
  auto median = calls.buckets.begin();
  while ((seen += median->second.calls) < (calls.count + 1) / 2) ++median;
  result.median_calls = median->second.calls;
  result.median_ns = median->second.wall_ns;
  for (const auto& [key, time_ns] : median->second.shares) {
    causes[key].median_ns += time_ns;
  }
  for (auto& [key, cause] : causes) {
    cause.path = functions_of(key.first);
    cause.state = key.second;
    result.causes.push_back(std::move(cause));
  }
  std::stable_sort(result.causes.begin(), result.causes.end(),
                   [&](const SlowCause& a, const SlowCause& b) {
                     return result.more_ns(a) > result.more_ns(b);
                   });
  return result;
}

std::vector<SlowComparison> SlowCauses::comparisons() const {
  std::vector<SlowComparison> all;
  for (const auto& [function, calls] : functions_) {
    if (calls.count >= kCallsMin) all.push_back(comparison(function, calls));
  }
  std::sort(all.begin(), all.end(), [](const SlowComparison& a, const SlowComparison& b) {
    const auto average = [](const SlowComparison& of) {
      return static_cast<double>(of.slow_ns) / static_cast<double>(of.slow_calls);
    };
    return std::tuple(-average(a), a.function) < std::tuple(-average(b), b.function);
  });
  return all;
}

}  // namespace arctrace::reader
