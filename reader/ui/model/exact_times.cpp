#include "reader/ui/model/exact_times.hpp"

#include <algorithm>
#include <utility>

namespace arctrace::reader {
namespace {

std::vector<ExactRange> sorted_apart(std::vector<ExactRange> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const ExactRange& a, const ExactRange& b) {
    return a.from_ns < b.from_ns;
  });
  std::vector<ExactRange> apart;
  for (const ExactRange& range : ranges) {
    if (apart.empty() || range.from_ns > apart.back().until_ns) {
      apart.push_back(range);
    } else {
      apart.back().until_ns = std::max(apart.back().until_ns, range.until_ns);
    }
  }
  return apart;
}

// A stretch without a duration touches a range if it begins in it.
bool touches(const std::vector<ExactRange>& ranges, int64_t start_ns, int64_t stop_ns) {
  const auto range = std::partition_point(
      ranges.begin(), ranges.end(),
      [&](const ExactRange& earlier) { return earlier.until_ns <= start_ns; });
  return range != ranges.end() &&
         (range->from_ns < stop_ns || range->from_ns == start_ns);
}

}  // namespace

ExactTimes::ExactTimes(std::vector<ExactRange> ranges)
    : ranges_(sorted_apart(std::move(ranges))) {}

void ExactTimes::set_path(const CriticalPath& path) {
  path_.clear();
  for (const PathPiece& piece : path.pieces) {
    path_[piece.thread].push_back({piece.start_ns, piece.stop_ns});
  }
  for (auto& [thread, ranges] : path_) ranges = sorted_apart(std::move(ranges));
}

ExactFor ExactTimes::exact_for(ThreadIndex thread, int64_t start_ns,
                               int64_t stop_ns) const {
  if (touches(ranges_, start_ns, stop_ns)) return ExactFor::kRange;
  const auto path = path_.find(thread);
  const bool is_on_path = path != path_.end() && touches(path->second, start_ns, stop_ns);
  return is_on_path ? ExactFor::kCriticalPath : ExactFor::kNothing;
}

}  // namespace arctrace::reader
