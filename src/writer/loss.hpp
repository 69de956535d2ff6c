// Loss accounting. A thread's losses are counted in its slot, by cause; the counters only
// grow. LOST records count them and advance `reported` (src/protocol/losses.hpp). The
// difference is the number for which the collector, or the slot's next owner, still has
// to write LOST records.
#pragma once

#include <arctrace/format.h>

#include <cstdint>

#include "src/base/shared_atomics.hpp"
#include "src/protocol/losses.hpp"
#include "src/writer/thread_state.hpp"

namespace arctrace::writer {

// Adds to a count of the slot by fetch-add, because a signal handler of the same thread
// may come between load and store. V3, matches V4: a process that sees the count also
// sees that the slot was asked for (slot_next), and so whether it may have had an owner
// before.
inline void add_to_lost(arctrace_writer_slot& slot, arctrace_loss_cause cause,
                        uint64_t count) {
  IpcAtomics::fetch_add_acq_rel(slot.lost[cause], count);
}

inline void count_lost(arctrace_writer_slot& slot, ThreadState& state,
                       arctrace_loss_cause cause, uint64_t ticks) {
  if (!state.loss.pending) {
    state.loss.since_ticks = ticks;
    state.loss.pending = true;
    state.chain.take_grant_back();
  }
  add_to_lost(slot, cause, 1);
}

// Counts the entry and the exit of a call for which there is no space among the thread's
// open calls.
inline void count_lost_call(ThreadState& state, uint64_t ticks) {
  arctrace_writer_slot& slot = state.slot.slot();
  count_lost(slot, state, ARCTRACE_LOST_NESTED, ticks);
  add_to_lost(slot, ARCTRACE_LOST_NESTED, 1);
}

// How many records a slot had lost, by cause, at one moment.
struct CountedLosses {
  uint64_t counts[ARCTRACE_LOST_CAUSES];

  friend bool operator==(const CountedLosses& a, const CountedLosses& b) {
    for (uint32_t cause = 0; cause < ARCTRACE_LOST_CAUSES; ++cause) {
      if (a.counts[cause] != b.counts[cause]) return false;
    }
    return true;
  }
};

inline CountedLosses counted_losses(arctrace_writer_slot& slot) {
  CountedLosses counted;
  for (uint32_t cause = 0; cause < ARCTRACE_LOST_CAUSES; ++cause) {
    counted.counts[cause] = IpcAtomics::load_relaxed(slot.lost[cause]);
  }
  return counted;
}

// The contents of one LOST record.
struct Losses {
  uint32_t cause;
  uint32_t flags;
  uint64_t count;
  uint64_t until;  // the value of reported[cause] once the record is written
};

// Calls emit(losses) for each cause with losses among those `counted` that no LOST record
// counts yet, those of the slot's earlier owner (ARCTRACE_LOST_INHERITED) before its own.
// emit() returns false if there is no space, true if it has written the record
// (ReportedLosses::commit()). Only for the slot's owner.
template <class Emit>
bool report_own_losses(arctrace_writer_slot& slot, const ThreadState& state,
                       const CountedLosses& counted, const Emit& emit) {
  bool all = true;
  for (uint32_t cause = 0; cause < ARCTRACE_LOST_CAUSES; ++cause) {
    uint64_t reported = IpcAtomics::load_relaxed(slot.reported[cause]);
    const uint64_t inherited = state.loss.at_start[cause];
    bool has_space = true;
    if (reported < inherited) {
      has_space =
          emit(Losses{cause, ARCTRACE_LOST_INHERITED, inherited - reported, inherited});
      reported = inherited;
    }
    const uint64_t lost = counted.counts[cause];
    if (has_space && lost != reported)
      has_space = emit(Losses{cause, 0, lost - reported, lost});
    all = has_space && all;
  }
  return all;
}

}  // namespace arctrace::writer
