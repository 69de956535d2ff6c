#include "reader/analysis/function_times.hpp"

#include <algorithm>
#include <bit>

namespace arctrace::reader {
namespace {

constexpr unsigned kSubBits = 5;
constexpr size_t kSubBuckets = size_t{1} << kSubBits;

// The middle of a bucket.
uint64_t duration_of(size_t bucket) {
  const size_t group = bucket / kSubBuckets;
  if (group == 0) return bucket;
  const auto shift = static_cast<unsigned>(group - 1);
  const uint64_t from = (kSubBuckets + bucket % kSubBuckets) << shift;
  return from + ((uint64_t{1} << shift) - 1) / 2;
}

}  // namespace

// Group 0 has the durations below 32; group g > 0 those from 32 << (g - 1) on, in buckets
// of width 1 << (g - 1).
size_t DurationHistogram::bucket_of(uint64_t duration_ns) {
  if (duration_ns < kSubBuckets) return static_cast<size_t>(duration_ns);
  const auto shift = static_cast<unsigned>(std::bit_width(duration_ns)) - kSubBits - 1;
  return (size_t{shift} + 1) * kSubBuckets +
         static_cast<size_t>((duration_ns >> shift) - kSubBuckets);
}

void DurationHistogram::add(uint64_t duration_ns) {
  ++count_;
  sum_ns_ += duration_ns;
  min_ns_ = std::min(min_ns_, duration_ns);
  max_ns_ = std::max(max_ns_, duration_ns);
  ++buckets_[index_of(bucket_of(duration_ns))];
}

void DurationHistogram::add(const DurationHistogram& other) {
  count_ += other.count_;
  sum_ns_ += other.sum_ns_;
  min_ns_ = std::min(min_ns_, other.min_ns_);
  max_ns_ = std::max(max_ns_, other.max_ns_);
  for (size_t i = 0; i < other.buckets_.size(); ++i) {
    const uint64_t durations = other.buckets_[i];
    if (durations != 0) buckets_[index_of(other.first_ + i)] += durations;
  }
}

size_t DurationHistogram::index_of(size_t bucket) {
  const size_t group_begin = bucket - bucket % kSubBuckets;
  if (buckets_.empty()) first_ = group_begin;
  if (group_begin < first_) {
    buckets_.insert(buckets_.begin(), first_ - group_begin, 0);
    first_ = group_begin;
  }
  if (bucket - first_ >= buckets_.size()) {
    buckets_.resize(group_begin - first_ + kSubBuckets);
  }
  return bucket - first_;
}

uint64_t DurationHistogram::average_ns() const {
  return static_cast<uint64_t>(sum_ns_ / count_);
}

std::optional<uint64_t> DurationHistogram::quantile_ns(uint64_t per_mille) const {
  const absl::uint128 all = count_;
  if (all * (1000 - per_mille) < 1000) return std::nullopt;
  // The least rank, from 1, up to which there are at least this many.
  const auto rank = static_cast<uint64_t>((all * per_mille + 999) / 1000);
  uint64_t seen = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen >= rank) return std::clamp(duration_of(first_ + i), min_ns_, max_ns_);
  }
  return max_ns_;
}

void DurationHistogram::for_powers(
    absl::FunctionRef<void(uint64_t, uint64_t, uint64_t)> visit) const {
  if (count_ == 0) return;
  // Group 0 of the buckets holds several powers of two; here, too, each is a range.
  const auto power_of = [](uint64_t duration_ns) {
    return static_cast<unsigned>(std::bit_width(duration_ns));
  };
  std::vector<uint64_t> powers(power_of(max_ns_) + 1);
  for (size_t i = 0; i < buckets_.size(); ++i) {
    if (buckets_[i] != 0) powers[power_of(duration_of(first_ + i))] += buckets_[i];
  }
  for (unsigned power = power_of(min_ns_); power < powers.size(); ++power) {
    visit(power == 0 ? 0 : uint64_t{1} << (power - 1),
          power == 64 ? UINT64_MAX : uint64_t{1} << power, powers[power]);
  }
}

bool is_timed(uint16_t flags) {
  constexpr unsigned kNotTimed = kFrameExitLost | kFrameEntryLost | kFrameEnteredBefore |
                                 kFrameInherited | kFrameOpen | kFrameResumed |
                                 kFrameCutStart | kFrameCutStop;
  return (flags & kNotTimed) == 0;
}

FunctionTimes::ByFunction& FunctionTimes::group_of(ThreadIndex thread) {
  if (recent_ == nullptr || thread != recent_thread_) {
    std::unique_ptr<ByFunction>& group =
        groups_[group_index(definitions_, grouping_, thread)];
    if (group == nullptr) group = std::make_unique<ByFunction>();
    recent_thread_ = thread;
    recent_ = group.get();
  }
  return *recent_;
}

void FunctionTimes::frame_closed(const FrameInfo& frame, uint64_t /*token*/, bool shown) {
  if (!shown || frame.count > 1 || !is_timed(frame.flags)) return;
  ByFunction& group = group_of(frame.thread);
  if (frame.function >= group.size()) group.resize(frame.function + 1);
  std::unique_ptr<DurationHistogram>& times = group[frame.function];
  if (times == nullptr) times = std::make_unique<DurationHistogram>();
  times->add(frame.duration_ns);
}

const DurationHistogram* FunctionTimes::find(const TreeGroup& group,
                                             FunctionId function) const {
  const auto found = groups_.find(group.index);
  if (found == groups_.end() || function >= found->second->size()) return nullptr;
  return (*found->second)[function].get();
}

}  // namespace arctrace::reader
