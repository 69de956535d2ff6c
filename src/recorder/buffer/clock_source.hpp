// Which clock a session uses, and how its ticks lie on the kernel's clocks.
#pragma once

#include <arctrace/format.h>

#include <cstdint>

namespace arctrace {

// The CPU's invariant counter if the kernel trusts it too, else CLOCK_MONOTONIC.
arctrace_clock choose_clock();

// One moment on three clocks. The monotonic stamp was taken between two tick reads as
// close together as a few tries gave; `ticks` is their middle.
struct ClockSync {
  uint64_t ticks;
  uint64_t monotonic_ns;
  uint64_t realtime_ns;
};
ClockSync take_clock_sync(uint32_t clock);

// Ticks per second, measured over some milliseconds. Exact for CLOCK_MONOTONIC.
uint64_t measure_ticks_per_second(uint32_t clock);

}  // namespace arctrace
