// The session's tick source.
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

// Whether this machine has the clock: another one may have made the session.
inline bool has_clock(uint32_t clock) {
#if defined(__x86_64__)
  return clock == ARCTRACE_CLOCK_TSC || clock == ARCTRACE_CLOCK_MONOTONIC;
#elif defined(__aarch64__)
  return clock == ARCTRACE_CLOCK_CNTVCT || clock == ARCTRACE_CLOCK_MONOTONIC;
#else
  return clock == ARCTRACE_CLOCK_MONOTONIC;
#endif
}

// `clock`: enum arctrace_clock, from a checked geometry. Unfenced: a stamp may be taken
// some ns before or after its place in the program, as a call takes.
inline uint64_t read_ticks(uint32_t clock) {
#if defined(__x86_64__)
  if (clock == ARCTRACE_CLOCK_TSC) return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  if (clock == ARCTRACE_CLOCK_CNTVCT) {
    uint64_t ticks;
    asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
  }
#endif
  return read_monotonic_ns();
}

}  // namespace arctrace
