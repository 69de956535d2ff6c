// Loss accounting. A thread's losses are counted in its slot, by cause; the counters
// only grow. LOST records say them in-band and `reported` follows; the difference is
// what the collector, or the slot's next owner, still has to say.
#pragma once

#include <arctrace/format.h>

#include <cstdint>

#include "src/shared_atomics.hpp"
#include "src/thread_state.hpp"

namespace arctrace {

// fetch-add, because a signal handler of the same thread may come between load and store.
inline void count_lost(arctrace_writer_slot& slot, ThreadState& state,
                       arctrace_loss_cause cause, uint64_t ticks) {
  if (!state.loss_pending) {
    state.lost_since_ticks = ticks;
    state.loss_pending = true;
  }
  IpcAtomics::fetch_add_relaxed(slot.lost[cause], uint64_t{1});
}

inline void count_lost_without_slot(arctrace_control& control,
                                    arctrace_loss_cause cause) {
  IpcAtomics::fetch_add_relaxed(control.lost[cause], uint64_t{1});
}

// Calls say(cause, count) for each cause with losses that no LOST record has said yet;
// true from it means that the record is committed, and they count as said.
template <class Say>
bool report_losses(arctrace_writer_slot& slot, Say&& say) {
  bool all = true;
  for (uint32_t cause = 0; cause < ARCTRACE_LOST_CAUSES; ++cause) {
    const uint64_t lost = IpcAtomics::load_relaxed(slot.lost[cause]);
    const uint64_t reported = IpcAtomics::load_relaxed(slot.reported[cause]);
    if (lost == reported) continue;
    if (say(cause, lost - reported)) {
      // J1 release: who sees the count as said finds the record (J2: the collector).
      IpcAtomics::store_release(slot.reported[cause], lost);
    } else {
      all = false;
    }
  }
  return all;
}

}  // namespace arctrace
