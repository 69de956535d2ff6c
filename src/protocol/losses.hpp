// The counters of lost records in the control page and the writer slots, one for each
// cause (enum arctrace_loss_cause). They only grow.
#pragma once

#include <arctrace/format.h>

#include <cstdint>

#include "src/base/shared_atomics.hpp"

namespace arctrace {

// Counts a lost record of a thread that has no slot.
inline void count_lost_without_slot(arctrace_control& control,
                                    arctrace_loss_cause cause) {
  IpcAtomics::fetch_add_relaxed(control.lost[cause], uint64_t{1});
}

// Calls visit(cause, count) for each cause with losses that no LOST record reports.
template <class Visit>
void for_each_unreported_loss(arctrace_writer_slot& slot, const Visit& visit) {
  for (uint32_t cause = 0; cause < ARCTRACE_LOST_CAUSES; ++cause) {
    const uint64_t lost = IpcAtomics::load_relaxed(slot.lost[cause]);
    const uint64_t reported = IpcAtomics::load_relaxed(slot.reported[cause]);
    if (lost != reported) visit(cause, lost - reported);
  }
}

}  // namespace arctrace
