// Changes of the open frames that a signal handler may interrupt. A change is announced
// before its record is committed. If a handler comes in between and jumps away, the next
// writer call finishes the change, provided that the record was committed.
#pragma once

#include <atomic>

#include "src/writer/thread_local.hpp"

namespace arctrace {

inline void announce(ThreadLocal& local, const StackChange& change) {
  local.change.word0 = nullptr;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  local.change.committed = change.committed;
  local.change.depth = change.depth;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  local.change.word0 = change.word0;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

// Finishes the change that a signal handler interrupted, if its record is complete.
__attribute__((noinline)) void resolve_change(ThreadLocal& local);

}  // namespace arctrace
