// Ticks of the trace's clock <-> nanoseconds since the session's start.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace arctrace::reader {

// One moment on three clocks (a CLOCK_SYNC record).
struct ClockSync {
  uint64_t ticks = 0;
  uint64_t monotonic_ns = 0;
  uint64_t realtime_ns = 0;
};

// A piecewise-linear, exact map: ns = floor of the line through two syncs, in integers,
// so that no error adds up. Where the kernel's clock was given another rate between two
// syncs (by adjtimex), and was steady before and behind, the lines of before and behind
// are drawn to where they meet. Before the first and after the last sync the line of that
// end goes on; results that do not fit saturate.
class ClockMap {
 public:
  // One line for all: `start` and the rate. A rate of 0 counts as 1e9.
  ClockMap(ClockSync start, uint64_t ticks_per_second);

  // The lines from the start through `syncs`, sorted by ticks. Those that do not rise
  // strictly in ticks, or fall in monotonic_ns, are left out; returns how many that are.
  // Fewer than two change nothing: one may stand so near to the start that the line
  // through both says little about the rate.
  uint64_t set_syncs(std::span<const ClockSync> syncs);

  // CLOCK_MONOTONIC ns since the session's start; negative before it.
  int64_t to_ns(uint64_t ticks) const;

  // The ticks at a CLOCK_MONOTONIC time (not since the session's start): the kernel's
  // records have such times.
  uint64_t to_ticks(uint64_t monotonic_ns) const;

  // CLOCK_REALTIME ns of a time that to_ns gave, by the offset at the session's start.
  int64_t to_realtime_ns(int64_t time_ns) const;

 private:
  // ns = origin_ns + floor((ticks - origin_ticks) * ns_span / tick_span)
  struct Segment {
    uint64_t origin_ticks;
    int64_t origin_ns;
    uint64_t tick_span, ns_span;
    uint64_t rate_whole, rate_fraction;  // ns_span / tick_span as 64.64 fixed point
  };

  void draw(std::span<const ClockSync> rising);
  static Segment make_segment(uint64_t origin_ticks, int64_t origin_ns,
                              uint64_t tick_span, uint64_t ns_span);
  static int64_t apply(const Segment& segment, uint64_t ticks);

  ClockSync start_;
  std::vector<Segment> segments_;  // sorted by origin_ticks, never empty
  mutable size_t last_ = 0;        // segment of the last question: they come in order
};

}  // namespace arctrace::reader
