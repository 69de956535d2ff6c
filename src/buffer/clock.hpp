// Reads the clock that stamps a session's records, and the kernel's clocks.
#pragma once

#include <arctrace/format.h>
#include <time.h>

#include <cstdint>
#include <string_view>

namespace arctrace {

inline uint64_t read_clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u +
         static_cast<uint64_t>(now.tv_nsec);
}

// By how much CLOCK_MONOTONIC is ahead in this process' time namespace; 0 until
// learn_time_namespace().
extern uint64_t time_namespace_offset_ns;

// Finds that out. False: the process is in a namespace of which /proc says nothing, as
// after unshare() of another one for its children. Uses no libc.
bool learn_time_namespace();

// Why the kernel's records cannot be placed in time then.
inline constexpr char kUnknownTimeNamespace[] =
    "the offset of this time namespace is not known: use unshare --fork";

// The same from the text of /proc/PID/timens_offsets. False: it is none.
bool read_time_namespace_offset(std::string_view text, uint64_t& offset_ns);

// CLOCK_MONOTONIC of the machine's first time namespace, in which the kernel's records
// are stamped.
inline uint64_t read_monotonic_ns() {
  return read_clock_ns(CLOCK_MONOTONIC) - time_namespace_offset_ns;
}

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
