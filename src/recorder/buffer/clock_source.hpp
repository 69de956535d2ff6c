// Chooses the clock of a session, measures its rate, and reads it together with the
// kernel's clocks, so that readers can convert ticks to nanoseconds.
#pragma once

#include <arctrace/format.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

namespace arctrace::recorder {

// The comparison of all CPUs' counters, where the kernel does not say whether they run
// together.

// A CPU's counter and CLOCK_MONOTONIC at one moment. The counter was read before and
// after the clock: `ticks` is the middle of the two reads, and `width` their distance.
struct CounterSample {
  uint64_t ticks;
  uint64_t width;
  uint64_t monotonic_ns;
};

// Takes a sample on the CPU of that number; nullopt: no thread may run there.
using SampleCounter = std::function<std::optional<CounterSample>(size_t cpu)>;

// Compares each CPU's counter with that of the first one of `cpus`, by CLOCK_MONOTONIC,
// which is the same on all CPUs. False: one counter differs by more than its samples'
// width, or by more than half a microsecond could hide, or a sample could not be taken.
bool counters_agree(std::span<const size_t> cpus, const SampleCounter& sample);

// Compares the counters of the CPUs on which this thread may run. Moves the thread from
// one CPU to the next, and back: some 50 us for each.
bool counters_agree();

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

// How a clock word moved.
struct ClockWordTimes {
  uint64_t stores = 0;
  uint64_t mean_age_ns = 0;  // how much too early a time is on average
  uint64_t longest_ns = 0;   // the longest time between two stores
};

// Whether `then` was taken on this machine since it was booted, as far as the clocks
// tell: a copy of a buffer may be from anywhere. `clock` had about `ticks_per_second`.
bool is_of_this_boot(const ClockSync& then, uint32_t clock, uint64_t ticks_per_second);

// Ticks per second, measured over some milliseconds. Exact for CLOCK_MONOTONIC.
uint64_t measure_ticks_per_second(uint32_t clock);

}  // namespace arctrace::recorder
