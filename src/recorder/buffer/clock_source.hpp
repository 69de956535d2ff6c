// Chooses the clock of a session, measures its rate, and reads it together with the
// kernel's clocks, so that readers can convert ticks to nanoseconds.
#pragma once

#include <arctrace/format.h>

#include <cstdint>

namespace arctrace {

// The CPU's invariant counter if the kernel uses it too, or if it is the same on all CPUs
// of a guest of KVM; else CLOCK_MONOTONIC, which has no fast path.
arctrace_clock choose_clock();

// One moment on three clocks. The monotonic time was read between two tick reads, the
// closest pair of a few tries; `ticks` is the middle of the two.
struct ClockSync {
  uint64_t ticks;
  uint64_t monotonic_ns;
  uint64_t realtime_ns;
};
ClockSync take_clock_sync(uint32_t clock);

// Whether `then` was taken on this machine since it was booted, as far as the clocks
// tell: a copy of a buffer may be from anywhere. `clock` had about `ticks_per_second`.
bool is_of_this_boot(const ClockSync& then, uint32_t clock, uint64_t ticks_per_second);

// Ticks per second, measured over some milliseconds. Exact for CLOCK_MONOTONIC.
uint64_t measure_ticks_per_second(uint32_t clock);

}  // namespace arctrace
