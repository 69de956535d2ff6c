// Loss accounting. A thread's losses are counted in its slot, by cause; the counters only
// grow. LOST records report them and advance `reported` (reported_losses.hpp). The
// difference is what the collector, or the slot's next owner, still has to report.
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
    state.chain.take_grant_back();
  }
  IpcAtomics::fetch_add_relaxed(slot.lost[cause], uint64_t{1});
}

// The contents of one LOST record.
struct Losses {
  uint32_t cause;
  uint32_t flags;
  uint64_t count;
  uint64_t until;  // reported[cause], once it is written
};

// Calls emit(losses) for each cause with losses that are not reported yet, those of the
// slot's earlier owner (ARCTRACE_LOST_INHERITED) before its own. emit() returns false if
// there is no room, true if it has reported them (ReportedLosses::commit()). Only for the
// slot's owner.
template <class Emit>
bool report_own_losses(arctrace_writer_slot& slot, const ThreadState& state,
                       const Emit& emit) {
  bool all = true;
  for (uint32_t cause = 0; cause < ARCTRACE_LOST_CAUSES; ++cause) {
    uint64_t reported = IpcAtomics::load_relaxed(slot.reported[cause]);
    const uint64_t inherited = state.loss.at_start[cause];
    bool has_room = true;
    if (reported < inherited) {
      has_room =
          emit(Losses{cause, ARCTRACE_LOST_INHERITED, inherited - reported, inherited});
      reported = inherited;
    }
    const uint64_t lost = IpcAtomics::load_relaxed(slot.lost[cause]);
    if (has_room && lost != reported)
      has_room = emit(Losses{cause, 0, lost - reported, lost});
    all = has_room && all;
  }
  return all;
}

}  // namespace arctrace
