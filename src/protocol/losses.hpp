// The counters of lost records in the control page and the writer slots, one for each
// cause (enum arctrace_loss_cause), which only grow; and how LOST records count them.
#pragma once

#include <arctrace/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/base/memory.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/buffer/buffer_view.hpp"

namespace arctrace {

// Counts a lost record of a thread that has no slot.
inline void count_lost_without_slot(arctrace_control& control,
                                    arctrace_loss_cause cause) {
  IpcAtomics::fetch_add_relaxed(control.lost[cause], uint64_t{1});
}

// Calls visit(cause, count) for each cause with losses that no LOST record has counted
// yet.
template <class Visit>
void for_each_unreported_loss(arctrace_writer_slot& slot, const Visit& visit) {
  for (uint32_t cause = 0; cause < ARCTRACE_LOST_CAUSES; ++cause) {
    const uint64_t lost = IpcAtomics::load_relaxed(slot.lost[cause]);
    const uint64_t reported = IpcAtomics::load_relaxed(slot.reported[cause]);
    if (lost != reported) visit(cause, lost - reported);
  }
}

// Has LOST records count each loss exactly once, also if the thread dies or a longjmp
// abandons its call between the commit of a LOST record and the update of slot.reported.
// For that, the slot first announces which record counts how many.
template <class A>
class ReportedLosses {
 public:
  // Called by the slot's owner: commits with `word0` the LOST record at `record`, which
  // counts the losses of `cause` up to `until`. REQUIRES: the block can't be recycled
  // meanwhile.
  static void commit(const BufferView& view, arctrace_writer_slot& slot, uint32_t cause,
                     uint64_t until, std::byte* record, uint32_t word0) {
    A::store_relaxed(slot.reporting_until, until);
    A::store_relaxed(slot.reporting_cause, cause);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    A::store_relaxed(slot.reporting, static_cast<uint64_t>(record - view.base()));
    std::atomic_signal_fence(std::memory_order_seq_cst);
    A::store_release(word_at(record), word0);  // I1
    // J1 release, matches J2 in the collector: with the count it sees the record.
    A::store_release(slot.reported[cause], until);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    A::store_relaxed(slot.reporting, uint64_t{0});
  }

  // How many losses of `cause` the LOST records have counted.
  static uint64_t reported(const BufferView& view, arctrace_writer_slot& slot,
                           uint32_t cause) {
    const uint64_t reported = A::load_acquire(slot.reported[cause]);  // J2
    if (A::load_relaxed(slot.reporting_cause) != cause || !is_reported(view, slot)) {
      return reported;
    }
    const uint64_t until = A::load_relaxed(slot.reporting_until);
    return until <= A::load_relaxed(slot.lost[cause]) ? std::max(reported, until)
                                                      : reported;
  }

  // Brings the count up to date, idempotently. REQUIRES: the caller has the slot, and
  // either its owner is dead, or the caller is the owner and a longjmp abandoned a call
  // of it. The owner's blocks are not released yet.
  static void update(const BufferView& view, arctrace_writer_slot& slot) {
    const uint32_t cause = A::load_relaxed(slot.reporting_cause);
    if (cause < ARCTRACE_LOST_CAUSES) {
      A::store_release(slot.reported[cause], reported(view, slot, cause));  // J1
    }
    A::store_relaxed(slot.reporting, uint64_t{0});
  }

 private:
  // Whether a LOST record is announced, and committed.
  static bool is_reported(const BufferView& view, arctrace_writer_slot& slot) {
    const uint64_t offset = A::load_relaxed(slot.reporting);
    const Geometry& geometry = view.geometry();
    if (offset < geometry.blocks_offset || offset % 4 != 0 ||
        offset > geometry.total_size - sizeof(uint32_t)) {
      return false;
    }
    const uint32_t word0 = A::load_acquire(word_at(view.base() + offset));  // I2
    return word0 >> ARCTRACE_TYPE_SHIFT == ARCTRACE_TYPE_LOST;  // not in progress
  }
};

}  // namespace arctrace
