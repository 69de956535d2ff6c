// The session that this process has joined: its buffer, its clock and whether the fast
// path is open. The API and the shim join it, and every record reads it.
#pragma once

#include <arctrace/format.h>

#include <cstdint>

#include "src/buffer/buffer_view.hpp"
#include "src/buffer/clock.hpp"
#include "src/hook_abi/shim_types.h"

namespace arctrace::writer {

// Set by join_session(), and inherited by fork children.
struct Session {
  static constexpr uint32_t kCoarseClock = UINT32_MAX;
  static constexpr uint32_t kClockWord = UINT32_MAX - 1;

  BufferView view;
  bool joined;
  bool released;   // its memory is given back, after it was ended
  bool is_map;     // the buffer is a BPF map
  uint32_t clock;  // the one that is read: enum arctrace_clock, kCoarseClock, kClockWord
  uint32_t head_size;         // of records in exclusive blocks
  uint64_t delta_max;         // the longest time from a block's base that these can have
  uint64_t ticks_per_second;  // about
  uint64_t words_per_block;   // after its header
  // The ticks and the coarse clock's time at the moment from which it is read.
  uint64_t coarse_base_ticks;
  uint64_t coarse_base_ns;
  // The file that `path` named when it was joined, as stat() identifies it.
  uint64_t device;
  uint64_t inode;
  uint32_t creator;  // the pid of the process that made the buffer
  char path[4096];   // a copy: the program may write over its environment
};

extern Session session;

// Maps the buffer file `path` and lets arctrace_gate point to its gate. Returns 0 or a
// negative errno, as arctrace_attach() documents. The later of two concurrent calls gets
// -EALREADY. Calls `before_records`, unless that is null, when all but the gate is ready;
// it returns whether all records are to take the slow path.
int join_session(const char* path, bool (*before_records)() = nullptr);

// The same for a buffer of which the recorder has handed over the descriptor `fd`, which
// stays open. The session has an empty path then: no program that this one executes can
// join it.
int join_handed_session(int fd, bool (*before_records)() = nullptr);

// Whether the session goes on. REQUIRES: joined.
arctrace_shim_session_state session_state();

// Ends recording in this process until it joins again. Calls in progress may go on: the
// buffer stays mapped. REQUIRES: joined.
void end_session();

// Gives back the memory of the session that was ended, whose addresses hold private zeros
// from now on, so that this process can join again. Others find its slots in the buffer
// as those of dead threads. Copies of their locks stay in memory, because the kernel
// knows them: they are on their threads' robust lists. Other threads may run, but not in
// a writer call. False: memory can't be had, and nothing is changed. REQUIRES: ended.
bool release_session();

// Switches to the kernel's coarse clock, with a resolution of some milliseconds, because
// the CPU's counter must not be read any more. REQUIRES: joined.
void use_coarse_clock();

// Ends recording in this process for good. The mapping becomes private memory, so that
// calls in progress do no harm. REQUIRES: joined, and there is no other thread.
void leave_session();

__attribute__((noinline)) uint64_t coarse_ticks();

inline uint64_t session_ticks() {
  const uint32_t clock = session.clock;
  if (__builtin_expect(clock == kCounterClock, 1)) return read_counter();
  if (clock == Session::kClockWord) return read_ticks(session.view);
  return clock == Session::kCoarseClock ? coarse_ticks() : read_monotonic_ns();
}

// Whether records in exclusive blocks have bare heads: no time of their own.
inline bool has_bare_heads() { return session.clock == Session::kClockWord; }

}  // namespace arctrace::writer
