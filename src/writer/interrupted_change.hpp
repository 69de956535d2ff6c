// Changes of the open frames that a signal handler may interrupt. A change is announced
// before its record is committed. If a handler comes in between and jumps away, the next
// writer call finishes the change, provided that the record was committed.
#pragma once

#include <atomic>

#include "src/writer/thread_local.hpp"

namespace arctrace {

// Ends the change in progress. Between writer calls there is none.
inline void finish_change(ThreadLocal& local) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  local.change.word0 = nullptr;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

// REQUIRES: there is no change in progress.
inline void announce(ThreadLocal& local, const StackChange& change) {
  local.change.depth = change.depth;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  local.change.word0 = change.word0;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

// A change that adds the outermost `depth`-th frame, of which there is no record.
StackChange unrecorded_enter(uint32_t depth);

// For a writer call of a signal handler: finishes the change that it interrupted, if its
// record is committed. Otherwise, if the change adds a frame, counts that frame.
__attribute__((noinline)) void resolve_change(ThreadLocal& local);

// Ends a change that will never go on, because the handler jumped: if its record is not
// committed, the change is taken back.
void abandon_change(ThreadLocal& local);

}  // namespace arctrace
