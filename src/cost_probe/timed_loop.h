/* The common part of the programs that `arctrace record` runs to measure what recording a
 * call costs: how they time a loop of calls, and what they print. */
#ifndef ARCTRACE_COST_PROBE_TIMED_LOOP_H
#define ARCTRACE_COST_PROBE_TIMED_LOOP_H

#include <stdint.h>
#include <stdio.h>
#include <time.h>

/* The number of calls of each kind that are recorded. */
enum { PROBE_CALLS = 16384 };

__attribute__((no_instrument_function)) static inline uint64_t probe_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Makes PROBE_CALLS calls, and prints "KIND PS": the picoseconds of one,
 * in the quarter of the loop that took the least. Reading the clock is part of no
 * quarter. */
#define PROBE_LOOP(kind, call)                                          \
  do {                                                                  \
    uint64_t least = UINT64_MAX;                                        \
    for (int quarter = 0; quarter < 4; ++quarter) {                     \
      const uint64_t start = probe_now_ns();                            \
      for (int i = 0; i < PROBE_CALLS / 4; ++i) {                       \
        call;                                                           \
        __asm__ volatile("" ::: "memory");                              \
      }                                                                 \
      const uint64_t took = probe_now_ns() - start;                     \
      if (took < least) least = took;                                   \
    }                                                                   \
    printf("%d %llu\n", (kind),                                         \
           (unsigned long long)(least * 4000 / (uint64_t)PROBE_CALLS)); \
  } while (0)

#endif /* ARCTRACE_COST_PROBE_TIMED_LOOP_H */
