// Loss accounting. A thread's losses are counted in its slot, by cause; the counters
// only grow. LOST records tell them in-band and `reported` follows (reported_losses.hpp);
// the difference is what the collector, or the slot's next owner, still has to tell.
#pragma once

#include <arctrace/format.h>

#include <cstdint>

#include "src/base/shared_atomics.hpp"
#include "src/protocol/losses.hpp"
#include "src/writer/thread_state.hpp"

namespace arctrace {

// fetch-add, because a signal handler of the same thread may come between load and store.
inline void count_lost(arctrace_writer_slot& slot, ThreadState& state,
                       arctrace_loss_cause cause, uint64_t ticks) {
  if (!state.loss.pending) {
    state.loss.since_ticks = ticks;
    state.loss.pending = true;
  }
  IpcAtomics::fetch_add_relaxed(slot.lost[cause], uint64_t{1});
}

// What one LOST record is to tell of a slot.
struct Losses {
  uint32_t cause;
  uint32_t flags;
  uint64_t count;
  uint64_t until;  // reported[cause], once it is told
};

// For a slot's owner: calls tell(losses) for each cause with losses that are not told,
// those of an earlier owner (ARCTRACE_LOST_INHERITED) before its own. False from it means
// that there is no room, true that they are told (ReportedLosses::commit()).
template <class Tell>
bool report_own_losses(arctrace_writer_slot& slot, const ThreadState& state,
                       const Tell& tell) {
  bool all = true;
  for (uint32_t cause = 0; cause < ARCTRACE_LOST_CAUSES; ++cause) {
    uint64_t told = IpcAtomics::load_relaxed(slot.reported[cause]);
    const uint64_t inherited = state.loss.at_start[cause];
    bool has_room = true;
    if (told < inherited) {
      has_room =
          tell(Losses{cause, ARCTRACE_LOST_INHERITED, inherited - told, inherited});
      told = inherited;
    }
    const uint64_t lost = IpcAtomics::load_relaxed(slot.lost[cause]);
    if (has_room && lost != told) has_room = tell(Losses{cause, 0, lost - told, lost});
    all = has_room && all;
  }
  return all;
}

}  // namespace arctrace
