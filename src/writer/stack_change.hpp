// Records that change which frames are open, as one step: also for a signal handler that
// comes between, and for what follows if it jumps.
#pragma once

#include <atomic>

#include "src/writer/writer.hpp"

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

// Commits `record`, which leaves `depth` frames open. between() is called when the record
// is committed, before the depth changes.
template <class Between>
__attribute__((always_inline)) inline void commit_change(ScopeKind scope,
                                                         ThreadState& state,
                                                         const Reservation& record,
                                                         uint32_t depth,
                                                         const Between& between) {
  if (record.word0 == nullptr) {
    // Lost; but the frames are as they are: the next block's STACK tells them.
    state.depth = depth;
    return;
  }
  ThreadLocal& local = scope.local();
  const StackChange interrupted = local.change;
  announce(local, {record.word0, record.committed, depth});
  commit(scope, record);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  between();
  state.depth = depth;
  if (__builtin_expect(scope.nested(), 0)) announce(local, interrupted);
}

}  // namespace arctrace
