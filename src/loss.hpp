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

// Says what no LOST record has said yet of one cause, up to `until` of its losses. True
// from say(count) means that the record is committed, and they count as said.
template <class Say>
bool report_until(arctrace_writer_slot& slot, uint32_t cause, uint64_t until, Say&& say) {
  const uint64_t reported = IpcAtomics::load_relaxed(slot.reported[cause]);
  if (until == reported) return true;
  if (!say(until - reported)) return false;
  // J1 release: who sees the count as said finds the record (J2: the collector).
  IpcAtomics::store_release(slot.reported[cause], until);
  return true;
}

// For a dead owner's slot: calls say(cause, count) for each cause with unsaid losses.
template <class Say>
bool report_losses(arctrace_writer_slot& slot, Say&& say) {
  bool all = true;
  for (uint32_t cause = 0; cause < ARCTRACE_LOST_CAUSES; ++cause) {
    const auto say_cause = [&](uint64_t count) { return say(cause, count); };
    all = report_until(slot, cause, IpcAtomics::load_relaxed(slot.lost[cause]),
                       say_cause) &&
          all;
  }
  return all;
}

// For a slot's owner: calls say(cause, flags, count) for each cause with unsaid losses,
// those of an earlier owner (ARCTRACE_LOST_INHERITED) before its own.
template <class Say>
bool report_own_losses(arctrace_writer_slot& slot, const ThreadState& state, Say&& say) {
  bool all = true;
  for (uint32_t cause = 0; cause < ARCTRACE_LOST_CAUSES; ++cause) {
    const uint64_t inherited = state.lost_at_start[cause];
    bool said = true;
    if (IpcAtomics::load_relaxed(slot.reported[cause]) < inherited) {
      said = report_until(slot, cause, inherited, [&](uint64_t count) {
        return say(cause, ARCTRACE_LOST_INHERITED, count);
      });
    }
    said = said && report_until(slot, cause, IpcAtomics::load_relaxed(slot.lost[cause]),
                                [&](uint64_t count) { return say(cause, 0u, count); });
    all = said && all;
  }
  return all;
}

}  // namespace arctrace
