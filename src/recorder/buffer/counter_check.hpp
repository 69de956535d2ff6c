// Whether the counters of all CPUs run together, where the kernel does not say so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

namespace arctrace {

// A CPU's counter and CLOCK_MONOTONIC at one moment. The counter was read before and
// after the clock: `ticks` is the middle, and `width` how far apart the two were.
struct CounterSample {
  uint64_t ticks;
  uint64_t width;
  uint64_t monotonic_ns;
};

// Takes a sample on the CPU of that number; nullopt: no thread may run there.
using SampleCounter = std::function<std::optional<CounterSample>(size_t cpu)>;

// Compares each CPU's counter with that of the first one of `cpus`, by CLOCK_MONOTONIC,
// which is the same on all. False: one differs by more than its samples' width, or by
// more than half a microsecond could hide, or a sample could not be taken.
bool counters_agree(std::span<const size_t> cpus, const SampleCounter& sample);

// The same for the CPUs on which this thread may run. Moves the thread from one to the
// next, and back: some 50 us for each.
bool counters_agree();

}  // namespace arctrace
