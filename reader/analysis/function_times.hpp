// How the times of a function's calls are distributed: a histogram of durations, and the
// listener that collects them.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/functional/function_ref.h>
#include <absl/numeric/int128.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "reader/analysis/tree_groups.hpp"
#include "reader/replay/listener.hpp"

namespace arctrace::reader {

// A histogram of durations: quantiles within 1.6 % in bounded memory, whatever the number
// of durations and whatever they are. Log-linear: each power of two has 32 buckets of
// equal width, and below 64 ns each duration has its own. It takes memory for the powers
// of two between the shortest and the longest duration: 256 bytes each, 15 KiB at most.
// Adding takes constant time.
class DurationHistogram {
 public:
  // A number for the bucket of a duration; longer ones have larger numbers.
  static size_t bucket_of(uint64_t duration_ns);

  void add(uint64_t duration_ns);
  // Adds all durations of `other`.
  void add(const DurationHistogram& other);

  uint64_t count() const { return count_; }
  // REQUIRES: count() is not 0.
  uint64_t min_ns() const { return min_ns_; }
  uint64_t max_ns() const { return max_ns_; }
  uint64_t average_ns() const;

  // The duration that `per_mille` of 1000 do not exceed, by its nearest rank. Nothing if
  // there are too few durations for one of them to lie beyond it: for 990, below 100.
  std::optional<uint64_t> quantile_ns(uint64_t per_mille) const;

  // Calls `visit` with each range [from_ns, until_ns) of one power of two, from that of
  // the shortest duration to that of the longest, and how many durations are in it. A
  // duration of 0 is in [0, 1).
  void for_powers(
      absl::FunctionRef<void(uint64_t from_ns, uint64_t until_ns, uint64_t durations)>
          visit) const;

 private:
  // Makes space for a bucket, and returns its index in buckets_.
  size_t index_of(size_t bucket);

  uint64_t count_ = 0;
  uint64_t min_ns_ = UINT64_MAX, max_ns_ = 0;
  // The sum of the durations has 128 bits, so that it does not wrap on a hostile trace.
  absl::uint128 sum_ns_ = 0;
  size_t first_ = 0;               // the bucket of buckets_[0]; a multiple of 32
  std::vector<uint64_t> buckets_;  // whole powers of two
};

// Whether the time of a call is known: its entry and its exit were seen, both within the
// time range. A call that a jump or an exception abandoned has ended.
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
