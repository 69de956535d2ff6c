#include "reader/trace/missing_files.hpp"

#include <algorithm>
#include <iterator>

namespace arctrace::reader {

MissingTimes::MissingTimes(std::span<const MissingFiles> files, bool are_removed) {
  for (const MissingFiles& one : files) {
    if (one.is_removed == are_removed) times_.emplace_back(one.from_ns, one.to_ns);
  }
  std::sort(times_.begin(), times_.end());
  for (size_t i = 1; i < times_.size(); ++i) {
    times_[i].second = std::max(times_[i].second, times_[i - 1].second);
  }
}

bool MissingTimes::meet(int64_t from_ns, int64_t to_ns) const {
  const auto after =
      std::upper_bound(times_.begin(), times_.end(), std::pair(to_ns, INT64_MAX));
  return after != times_.begin() && std::prev(after)->second >= from_ns;
}

}  // namespace arctrace::reader
