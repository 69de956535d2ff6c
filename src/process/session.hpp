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
  uint32_t goes_straight;
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

// What fork wipes: a child begins with zeros and makes its own identity.
struct ProcessState {
  uint32_t phase;  // kNone, kMaking, kReady
  uint32_t id;
  uint32_t parent_id;
  uint32_t pid;                // 0: not known yet
  uint32_t origin;             // enum arctrace_process_origin
  uint64_t start_ticks;        // of its first record, or of the attach
  uint64_t definitions_chain;  // this process' SharedChain word
  uint32_t defined;            // 1: its PROCESS record is written
  uint32_t emitting;           // 1: a thread emits the registry (a try-lock)
  uint64_t emitted;            // registry entries written so far
  uint32_t round;              // control.definitions_round that they are written for

  static constexpr uint32_t kNone = 0;
  static constexpr uint32_t kMaking = 1;
  static constexpr uint32_t kReady = 2;
};

// The calling process' state, with an identity; null while another thread is making it,
// if that would take a system call that is forbidden, or if there is no session. `ticks`:
// stands for the process' start if it has none yet.
ProcessState* current_process(uint64_t ticks);

// The calling process was forked, and its number is `pid`: so its identity takes no
// system call.
void begin_forked_process(uint32_t pid);

// The calling process' number, if it has an identity; else 0. A vfork child's is its
// parent's, whose memory it has.
uint32_t known_pid();

// Whether this process was forked and has no identity yet.
bool is_new_process();

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
