// Converts ticks of the trace's clock to nanoseconds since the session's start, and back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace arctrace::reader {

// One moment on three clocks, as in a CLOCK_SYNC record.
struct ClockSync {
  uint64_t ticks = 0;
  uint64_t monotonic_ns = 0;
  uint64_t realtime_ns = 0;
};

// A piecewise-linear map: ns is the floor of the line through two syncs, calculated in
// integers, so that no errors add up. If the rate of the kernel's clock changed between
// two syncs (by adjtimex) and was steady before and after, the lines of before and after
// are extended to where they meet. Before the first and after the last sync the line of
// that end continues; results that do not fit saturate. Several threads may ask at once.
class ClockMap {
 public:
  // A single line, through `start` with this rate. A rate of 0 counts as 1e9.
  ClockMap(ClockSync start, uint64_t ticks_per_second);

  // Takes the lines from the start through `syncs`, which are sorted by ticks. Syncs that
  // do not rise strictly in ticks, or fall in monotonic_ns, are rejected; returns how
  // many. A single sync changes nothing, because it may be so close to the start that the
  // line through both says little about the rate.
  uint64_t set_syncs(std::span<const ClockSync> syncs);

  // CLOCK_MONOTONIC ns since the session's start; negative before it. Takes constant time
  // if ticks come in order.
  int64_t to_ns(uint64_t ticks) const;

  // The ticks at an absolute CLOCK_MONOTONIC time, which the kernel's records have.
  uint64_t to_ticks(uint64_t monotonic_ns) const;

  // The CLOCK_REALTIME ns of a result of to_ns, by the offset at the session's start.
  int64_t to_realtime_ns(int64_t time_ns) const;

 private:
  // ns = origin_ns + floor((ticks - origin_ticks) * ns_span / tick_span)
  struct Segment {
    uint64_t origin_ticks;
    int64_t origin_ns;
    uint64_t tick_span, ns_span;
    uint64_t rate_whole, rate_fraction;  // ns_span / tick_span as 64.64 fixed point
    uint64_t short_distance;             // below it no product needs more than 64 bits
  };

  void draw(std::span<const ClockSync> rising);
  static Segment make_segment(uint64_t origin_ticks, int64_t origin_ns,
                              uint64_t tick_span, uint64_t ns_span);
  static int64_t apply(const Segment& segment, uint64_t ticks);

  ClockSync start_;
  std::vector<Segment> segments_;  // sorted by origin_ticks, never empty
  // The segment of the last result of to_ns; accessed by relaxed atomics, as a hint.
  mutable size_t last_ = 0;
};

}  // namespace arctrace::reader
