// The times of which the page's file has every call: ranges that were asked for, and the
// critical path.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <vector>

#include "reader/streams/critical_path.hpp"
#include "reader/trace/record.hpp"

namespace arctrace::reader {

// Why a stretch stays exact although others of its duration do not.
enum class ExactFor : uint8_t { kNothing, kCriticalPath, kRange };
inline constexpr size_t kExactForCount = 3;

// A range of time, without its end.
struct ExactRange {
  int64_t from_ns = INT64_MIN, until_ns = INT64_MAX;
};

class ExactTimes {
 public:
  // `ranges`: in any order; they may overlap.
  explicit ExactTimes(std::vector<ExactRange> ranges);

  void set_path(const CriticalPath& path);
  bool has_ranges() const { return !ranges_.empty(); }
  bool has_path() const { return !path_.empty(); }

  // Returns why a stretch of the thread stays exact: it touches a range; else, the path
  // was in the thread meanwhile. Takes logarithmic time.
  ExactFor exact_for(ThreadIndex thread, int64_t start_ns, int64_t stop_ns) const;

 private:
  using Ranges = std::vector<ExactRange>;  // in order, without overlaps

  Ranges ranges_;
  absl::flat_hash_map<ThreadIndex, Ranges> path_;
};

}  // namespace arctrace::reader
