// A histogram of durations: quantiles within 1.6 % in bounded memory, whatever the number
// of durations and whatever they are.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/numeric/int128.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace arctrace::reader {

// Log-linear: each power of two has 32 buckets of equal width, and below 64 ns each
// duration has its own. It takes memory for the powers of two between the shortest and
// the longest duration: 256 bytes each, 15 KiB at most. Adding takes constant time.
class DurationHistogram {
 public:
  // A number for the bucket of a duration; longer ones have larger numbers.
  static size_t bucket_of(uint64_t duration_ns);

  void add(uint64_t duration_ns);
  // All durations of another one.
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
  // Makes room for a bucket, and returns its index in buckets_.
  size_t index_of(size_t bucket);

  uint64_t count_ = 0;
  uint64_t min_ns_ = UINT64_MAX, max_ns_ = 0;
  // Of the durations, in 128 bits, so that those of a hostile trace do not wrap.
  absl::uint128 sum_ns_ = 0;
  size_t first_ = 0;               // the bucket of buckets_[0]; a multiple of 32
  std::vector<uint64_t> buckets_;  // whole powers of two
};

}  // namespace arctrace::reader
