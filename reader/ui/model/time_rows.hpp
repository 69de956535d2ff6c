// Stretches of time in rows, such as the calls of a thread at one depth, in bounded
// memory: long ones exactly, short ones as density buckets of neighbours.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reader/ui/model/exact_times.hpp"

namespace arctrace::reader {

// A call, or the time for which a thread was in one state.
struct Stretch {
  int64_t start_ns = 0, stop_ns = 0;
  uint32_t what = 0;   // a FunctionId
  uint16_t flags = 0;  // enum FrameFlag
  ExactFor exact_for = ExactFor::kNothing;

  // The subtraction is unsigned, so that the times of a hostile trace wrap instead of
  // overflowing.
  uint64_t duration_ns() const {
    return static_cast<uint64_t>(stop_ns) - static_cast<uint64_t>(start_ns);
  }
};

// A density bucket: the stretches that begin in a piece of time of one grain, and are
// shorter than the grain.
struct DensityBucket {
  int64_t start_ns = 0;     // of the piece: a multiple of the grain
  uint64_t busy_ns = 0;     // of all stretches together
  uint64_t longest_ns = 0;  // of the longest stretch, whose function is `what`
  uint32_t what = 0;
  uint32_t count = 0;
};

// Both lists are in order of time. Stretches of one row do not overlap.
struct TimeRow {
  std::vector<Stretch> stretches;
  std::vector<DensityBucket> buckets;
};

// The rows begin with a grain of 0: all stretches are exact. Whenever there are more
// items than are allowed, the grain doubles, and shorter stretches become density
// buckets. So there are at most two items for each row and grain of time; adding takes
// constant time on average. Stretches with a ExactFor stay exact, as long as they are not
// too many: then they have a grain of their own, which doubles.
class TimeRows {
 public:
  explicit TimeRows(size_t max_items) : max_items_(max_items) {}

  void add(size_t row, const Stretch& stretch);
  // Makes the grain so coarse that there are at most `max_items`.
  void coarsen_to(size_t max_items);
  // Brings rows into order of time whose stretches did not come so. To be called before
  // they are read.
  void sort();

  // Stretches of at least this duration are exact.
  uint64_t grain_ns() const { return grain_ns_; }
  // The grain of the stretches with this ExactFor.
  uint64_t grain_ns(ExactFor what) const;
  size_t items() const { return items_; }
  size_t size() const { return rows_.size(); }
  // `row`: any number. The result is empty if nothing was added to the row.
  const TimeRow& row(size_t row) const;

 private:
  void coarsen();
  void rebuild();
  bool is_exact(const Stretch& stretch) const {
    return stretch.duration_ns() >= grain_ns(stretch.exact_for);
  }
  bool has_too_many(ExactFor what, size_t max_items) const;
  void thin(size_t max_items);

  size_t max_items_;
  size_t items_ = 0;
  uint64_t grain_ns_ = 0;
  std::array<uint64_t, kExactForCount> exact_grain_ns_{};
  // How many exact ones are shorter than grain_ns_.
  std::array<size_t, kExactForCount> exact_counts_{};
  std::vector<TimeRow> rows_;
};

// Adds `more`, which is of a later or of the same piece of time, to the last bucket of
// `buckets` if that is of the same piece. Returns whether a bucket was added.
bool add_to_buckets(std::vector<DensityBucket>& buckets, const DensityBucket& more);

// Returns the beginning of the piece of time that includes `time_ns`. REQUIRES: grain_ns
// is not 0.
int64_t piece_start_ns(int64_t time_ns, uint64_t grain_ns);

// Returns the visible part of a row in [from_ns, until_ns) when `pixel_ns` is one pixel:
// stretches of a pixel's duration or more, and those with a ExactFor, others as density
// buckets of one pixel, unless a pixel is 1 ns. REQUIRES: the row is sorted; pixel_ns is
// not 0, and at least the rows' grain if there are buckets.
TimeRow seen_of_row(const TimeRow& row, int64_t from_ns, int64_t until_ns,
                    uint64_t pixel_ns);

}  // namespace arctrace::reader
