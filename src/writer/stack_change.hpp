// Commits a record that changes which frames are open. Record and frames change as one
// step, also for a signal handler that comes in between, and for later calls if that
// handler jumps away.
#pragma once

#include <atomic>

#include "src/writer/commit.hpp"
#include "src/writer/interrupted_change.hpp"

namespace arctrace {

// Commits `record`, which leaves `depth` frames open. between() is called when the record
// is committed, before the depth changes.
template <class Between>
__attribute__((always_inline)) inline void commit_change(Nesting nesting,
                                                         ThreadState& state,
                                                         const Reservation& record,
                                                         uint32_t depth,
                                                         const Between& between) {
  if (record.word0 == nullptr) {
    // The record is lost, but the frames do change: the next block's STACK shows them.
    state.open.depth = depth;
    return;
  }
  ThreadLocal& local = thread_local_state;
  const StackChange interrupted = local.change;
  announce(local, {record.word0, record.committed, depth});
  commit(record);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  between();
  state.open.depth = depth;
  if (__builtin_expect(nesting.nested(), 0)) announce(local, interrupted);
}

}  // namespace arctrace
