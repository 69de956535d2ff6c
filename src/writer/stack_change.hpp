// Records that change which frames are open: record and frames change as one step, also
// for a signal handler that comes in between, and for the calls that follow if it jumps.
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
    // Lost; but the frames are as they are: the next block's STACK tells them.
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
