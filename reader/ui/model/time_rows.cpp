#include "reader/ui/model/time_rows.hpp"

#include <algorithm>

namespace arctrace::reader {
namespace {

// The first grain: in most programs half of the calls are shorter than twice this.
constexpr uint64_t kFirstGrain = 64;
constexpr uint64_t kLastGrain = uint64_t{1} << 62;

constexpr uint64_t kFinestPixel = 1;  // in ns: more zoom shows no more

size_t index_of(ExactFor what) { return static_cast<size_t>(what); }

// How many fourths of all items may stay exact for this reason.
size_t share_of(ExactFor what) { return what == ExactFor::kRange ? 2 : 1; }

DensityBucket density_bucket_of(const Stretch& stretch, uint64_t grain_ns) {
  const uint64_t duration = stretch.duration_ns();
  return {piece_start_ns(stretch.start_ns, grain_ns), duration, duration, stretch.what,
          1};
}

// Merges both lists, each piece once.
std::vector<DensityBucket> merged(const std::vector<DensityBucket>& buckets,
                                  const std::vector<Stretch>& short_ones,
                                  uint64_t grain_ns) {
  std::vector<DensityBucket> all;
  auto next = short_ones.begin();
  const auto add_until = [&](int64_t start_ns) {
    for (; next != short_ones.end(); ++next) {
      const DensityBucket bucket = density_bucket_of(*next, grain_ns);
      if (bucket.start_ns > start_ns) break;
      add_to_buckets(all, bucket);
    }
  };
  for (DensityBucket bucket : buckets) {
    bucket.start_ns = piece_start_ns(bucket.start_ns, grain_ns);
    add_until(bucket.start_ns);
    add_to_buckets(all, bucket);
  }
  add_until(INT64_MAX);
  return all;
}

}  // namespace

int64_t piece_start_ns(int64_t time_ns, uint64_t grain_ns) {
  const auto grain = static_cast<int64_t>(std::min(grain_ns, kLastGrain));
  const int64_t rest = time_ns % grain;
  if (rest >= 0) return time_ns - rest;
  return time_ns - rest < INT64_MIN + grain ? INT64_MIN : time_ns - rest - grain;
}

bool add_to_buckets(std::vector<DensityBucket>& buckets, const DensityBucket& more) {
  if (buckets.empty() || buckets.back().start_ns != more.start_ns) {
    buckets.push_back(more);
    return true;
  }
  DensityBucket& last = buckets.back();
  last.busy_ns += more.busy_ns;
  last.count += more.count;
  if (more.longest_ns > last.longest_ns) {
    last.longest_ns = more.longest_ns;
    last.what = more.what;
  }
  return false;
}

void TimeRows::add(size_t row, const Stretch& stretch) {
  if (row >= rows_.size()) rows_.resize(row + 1);
  TimeRow& to = rows_[row];
  if (is_exact(stretch)) {
    to.stretches.push_back(stretch);
    ++items_;
    if (stretch.duration_ns() < grain_ns_) ++exact_counts_[index_of(stretch.exact_for)];
  } else if (add_to_buckets(to.buckets, density_bucket_of(stretch, grain_ns_))) {
    ++items_;
  }
  if (items_ > max_items_) coarsen_to(max_items_ / 2);
}

void TimeRows::coarsen_to(size_t max_items) {
  while (items_ > max_items && grain_ns_ < kLastGrain) {
    coarsen();
    thin(max_items);
  }
}

uint64_t TimeRows::grain_ns(ExactFor what) const {
  return what == ExactFor::kNothing
             ? grain_ns_
             : std::min(grain_ns_, exact_grain_ns_[index_of(what)]);
}

bool TimeRows::has_too_many(ExactFor what, size_t max_items) const {
  return exact_counts_[index_of(what)] > max_items / 4 * share_of(what);
}

// Coarsens stretches that stay exact for a reason until there is space for the others.
void TimeRows::thin(size_t max_items) {
  for (const ExactFor what : {ExactFor::kCriticalPath, ExactFor::kRange}) {
    uint64_t& grain = exact_grain_ns_[index_of(what)];
    while (has_too_many(what, max_items) && grain < grain_ns_) {
      grain = grain == 0 ? kFirstGrain : 2 * grain;
      rebuild();
    }
  }
}

void TimeRows::coarsen() {
  grain_ns_ = grain_ns_ == 0 ? kFirstGrain : 2 * grain_ns_;
  rebuild();
}

// Brings the rows into the form that follows from the grains.
void TimeRows::rebuild() {
  sort();
  items_ = 0;
  exact_counts_ = {};
  std::vector<Stretch> short_ones;
  for (TimeRow& row : rows_) {
    short_ones.clear();
    std::erase_if(row.stretches, [&](const Stretch& stretch) {
      if (is_exact(stretch)) {
        if (stretch.duration_ns() < grain_ns_)
          ++exact_counts_[index_of(stretch.exact_for)];
        return false;
      }
      short_ones.push_back(stretch);
      return true;
    });
    row.buckets = merged(row.buckets, short_ones, grain_ns_);
    items_ += row.stretches.size() + row.buckets.size();
  }
}

// The rows are nearly always in order already.
void TimeRows::sort() {
  const auto before = [](const auto& a, const auto& b) {
    return a.start_ns < b.start_ns;
  };
  for (TimeRow& row : rows_) {
    if (!std::is_sorted(row.stretches.begin(), row.stretches.end(), before)) {
      std::stable_sort(row.stretches.begin(), row.stretches.end(), before);
    }
    if (std::is_sorted(row.buckets.begin(), row.buckets.end(), before)) continue;
    std::stable_sort(row.buckets.begin(), row.buckets.end(), before);
    std::vector<DensityBucket> once;
    for (const DensityBucket& bucket : row.buckets) add_to_buckets(once, bucket);
    items_ -= row.buckets.size() - once.size();
    row.buckets = std::move(once);
  }
}

const TimeRow& TimeRows::row(size_t row) const {
  static const TimeRow kNone;
  return row < rows_.size() ? rows_[row] : kNone;
}

TimeRow seen_of_row(const TimeRow& row, int64_t from_ns, int64_t until_ns,
                    uint64_t pixel_ns) {
  TimeRow seen;
  std::vector<Stretch> short_ones;
  // Stretches do not overlap, so their ends are in order, too.
  auto stretch = std::partition_point(
      row.stretches.begin(), row.stretches.end(),
      [&](const Stretch& earlier) { return earlier.stop_ns <= from_ns; });
  for (; stretch != row.stretches.end() && stretch->start_ns < until_ns; ++stretch) {
    const bool is_long = stretch->duration_ns() >= pixel_ns || pixel_ns <= kFinestPixel ||
                         stretch->exact_for != ExactFor::kNothing;
    (is_long ? seen.stretches : short_ones).push_back(*stretch);
  }
  const int64_t first_piece = piece_start_ns(from_ns, pixel_ns);
  auto bucket = std::partition_point(
      row.buckets.begin(), row.buckets.end(),
      [&](const DensityBucket& earlier) { return earlier.start_ns < first_piece; });
  std::vector<DensityBucket> buckets;
  for (; bucket != row.buckets.end() && bucket->start_ns < until_ns; ++bucket) {
    buckets.push_back(*bucket);
  }
  seen.buckets = merged(buckets, short_ones, pixel_ns);
  return seen;
}

}  // namespace arctrace::reader
