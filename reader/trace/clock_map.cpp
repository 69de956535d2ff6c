#include "reader/trace/clock_map.hpp"

#include <absl/numeric/int128.h>

#include <algorithm>
#include <limits>

namespace arctrace::reader {
namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

// a - b as a signed number, saturated.
int64_t difference(uint64_t a, uint64_t b) {
  if (a >= b) return int64_t(std::min(a - b, uint64_t(kMax)));
  return b - a > uint64_t(kMax) ? kMin : -int64_t(b - a);
}

int64_t add_saturated(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? kMax : kMin;
}

}  // namespace

ClockMap::ClockMap(ClockSync start, uint64_t ticks_per_second) : start_(start) {
  if (ticks_per_second == 0) ticks_per_second = kNsPerSecond;
  segments_.push_back(make_segment(start.ticks, 0, ticks_per_second, kNsPerSecond));
}

uint64_t ClockMap::set_syncs(std::span<const ClockSync> syncs) {
  uint64_t taken = 0;
  uint64_t left_out = 0;
  std::vector<Segment> segments;
  ClockSync last = start_;
  for (const ClockSync& sync : syncs) {
    const bool again = sync.ticks == last.ticks && sync.monotonic_ns == last.monotonic_ns;
    if (!again && (sync.ticks <= last.ticks || sync.monotonic_ns < last.monotonic_ns)) {
      ++left_out;
      continue;
    }
    ++taken;
    if (again) continue;
    segments.push_back(
        make_segment(last.ticks, difference(last.monotonic_ns, start_.monotonic_ns),
                     sync.ticks - last.ticks, sync.monotonic_ns - last.monotonic_ns));
    last = sync;
  }
  if (taken >= 2 && !segments.empty()) segments_ = std::move(segments);
  last_ = 0;
  return left_out;
}

int64_t ClockMap::to_ns(uint64_t ticks) const {
  const auto holds = [&](size_t i) {
    return (i == 0 || segments_[i].origin_ticks <= ticks) &&
           (i + 1 == segments_.size() || ticks < segments_[i + 1].origin_ticks);
  };
  if (!holds(last_)) {
    const auto next = std::upper_bound(segments_.begin(), segments_.end(), ticks,
                                       [](uint64_t wanted, const Segment& segment) {
                                         return wanted < segment.origin_ticks;
                                       });
    last_ = next == segments_.begin() ? 0 : size_t(next - segments_.begin()) - 1;
  }
  return apply(segments_[last_], ticks);
}

uint64_t ClockMap::to_ticks(uint64_t monotonic_ns) const {
  const int64_t ns = difference(monotonic_ns, start_.monotonic_ns);
  const auto next = std::upper_bound(
      segments_.begin(), segments_.end(), ns,
      [](int64_t wanted, const Segment& segment) { return wanted < segment.origin_ns; });
  const Segment& segment = next == segments_.begin() ? *next : *(next - 1);
  if (segment.ns_span == 0) return segment.origin_ticks;
  const bool before = ns < segment.origin_ns;
  const absl::uint128 distance = before ? uint64_t(segment.origin_ns) - uint64_t(ns)
                                        : uint64_t(ns) - uint64_t(segment.origin_ns);
  // Rounded so that to_ns gives the time again.
  const absl::uint128 product = distance * segment.tick_span;
  const absl::uint128 span =
      (before ? product : product + segment.ns_span - 1) / segment.ns_span;
  const uint64_t limit =
      before ? segment.origin_ticks : UINT64_MAX - segment.origin_ticks;
  const uint64_t ticks = span > absl::uint128(limit) ? limit : absl::Uint128Low64(span);
  return before ? segment.origin_ticks - ticks : segment.origin_ticks + ticks;
}

int64_t ClockMap::to_realtime_ns(int64_t time_ns) const {
  return add_saturated(difference(start_.realtime_ns, 0), time_ns);
}

ClockMap::Segment ClockMap::make_segment(uint64_t origin_ticks, int64_t origin_ns,
                                         uint64_t tick_span, uint64_t ns_span) {
  const absl::uint128 remainder = absl::MakeUint128(ns_span % tick_span, 0);
  return {origin_ticks, origin_ns,           tick_span,
          ns_span,      ns_span / tick_span, absl::Uint128Low64(remainder / tick_span)};
}

int64_t ClockMap::apply(const Segment& segment, uint64_t ticks) {
  const bool before = ticks < segment.origin_ticks;
  const absl::uint128 distance =
      before ? segment.origin_ticks - ticks : ticks - segment.origin_ticks;
  // By the reciprocal, which is too small by less than one part in 2^64: the quotient is
  // right, or one too small, and the remainder tells. A division would take longer than
  // all else that is done with a record.
  absl::uint128 quotient = distance * segment.rate_whole +
                           absl::Uint128High64(distance * segment.rate_fraction);
  absl::uint128 remainder = distance * segment.ns_span - quotient * segment.tick_span;
  if (remainder >= segment.tick_span) {
    quotient += 1;
    remainder -= segment.tick_span;
  }
  if (before && remainder != 0) quotient += 1;  // floor
  const int64_t span = quotient > absl::uint128(uint64_t(kMax))
                           ? kMax
                           : int64_t(absl::Uint128Low64(quotient));
  return add_saturated(segment.origin_ns, before ? -span : span);
}

}  // namespace arctrace::reader
