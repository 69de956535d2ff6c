// The session that this process has joined, and the process' identity in it.
#pragma once

#include <arctrace/format.h>

#include <cstdint>

#include "src/buffer/buffer_view.hpp"
#include "src/buffer/clock.hpp"

namespace arctrace {

// Set by join_session(); in fork children too.
struct Session {
  static constexpr uint32_t kCoarseClock = UINT32_MAX;

  BufferView view;
  bool joined;
  bool is_map;     // the buffer is a BPF map
  uint32_t clock;  // that is read: enum arctrace_clock, or kCoarseClock
  // Nonzero: all calls are recorded, and the clock is the CPU's counter: entries and
  // exits may take the straight path (straight_path.hpp). Once 0, for good.
  uint32_t fast_path_open;
  // From when the coarse clock is read: this many ticks at this time of it.
  uint64_t coarse_base_ticks;
  uint64_t coarse_base_ns;
  uint64_t coarse_ticks_per_second;
  char path[4096];  // a copy: the program may write over its environment
};

extern Session session;

// Maps the buffer file `path` and opens the gate. 0 or a negative errno, as
// arctrace_attach() documents. Not thread-safe against itself: the loser of two
// concurrent calls gets -EALREADY.
int join_session(const char* path);

// The clock's counter must not be read any more: from now on times are the kernel's
// coarse ones, of some milliseconds. REQUIRES: joined.
void use_coarse_clock();

// Ends recording in this process for good. Its mapping becomes private memory, so that
// calls in progress do no harm. REQUIRES: joined, and there is no other thread.
void leave_session();

__attribute__((noinline)) uint64_t coarse_ticks();

inline uint64_t session_ticks() {
  const uint32_t clock = session.clock;
  if (__builtin_expect(clock == kCounterClock, 1)) return read_counter();
  return clock == Session::kCoarseClock ? coarse_ticks() : read_monotonic_ns();
}

}  // namespace arctrace
