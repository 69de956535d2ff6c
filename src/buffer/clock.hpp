// Reads the clock that stamps a session's records, and the kernel's clocks.
#pragma once

#include <arctrace/format.h>
#include <time.h>

#include <cstdint>

namespace arctrace {

inline uint64_t read_clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u +
         static_cast<uint64_t>(now.tv_nsec);
}

inline uint64_t read_monotonic_ns() { return read_clock_ns(CLOCK_MONOTONIC); }

#if defined(__x86_64__)
inline constexpr uint32_t kCounterClock = ARCTRACE_CLOCK_TSC;
#elif defined(__aarch64__)
inline constexpr uint32_t kCounterClock = ARCTRACE_CLOCK_CNTVCT;
#endif

// Whether this machine has the clock; the buffer may come from another machine.
inline bool has_clock(uint32_t clock) {
  return clock == kCounterClock || clock == ARCTRACE_CLOCK_MONOTONIC;
}

// The CPU's counter. The read is not fenced, so it may take place some nanoseconds before
// or after the instructions around it.
inline uint64_t read_counter() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#endif
}

// `clock`: enum arctrace_clock, from a checked geometry.
inline uint64_t read_ticks(uint32_t clock) {
  return clock == kCounterClock ? read_counter() : read_monotonic_ns();
}

}  // namespace arctrace
