// A loss is told once, also by who dies, or is jumped out of, between the LOST record and
// the count of what is told: the slot announces which record tells how much.
#pragma once

#include <arctrace/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/buffer/buffer_view.hpp"

namespace arctrace {

template <class A>
class ReportedLosses {
 public:
  // By the slot's owner: commits the LOST record at `place` with `word0`, which tells the
  // losses of `cause` up to `until`. REQUIRES: the block can't be recycled meanwhile.
  static void commit(const BufferView& view, arctrace_writer_slot& slot, uint32_t cause,
                     uint64_t until, std::byte* place, uint32_t word0) {
    A::store_relaxed(slot.telling_until, until);
    A::store_relaxed(slot.telling_cause, cause);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    A::store_relaxed(slot.telling, static_cast<uint64_t>(place - view.base()));
    std::atomic_signal_fence(std::memory_order_seq_cst);
    A::store_release(word_at(place), word0);  // I1
    // J1 release: who sees the count as told finds the record (J2: the collector).
    A::store_release(slot.reported[cause], until);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    A::store_relaxed(slot.telling, uint64_t{0});
  }

  // How many losses of `cause` LOST records have told.
  static uint64_t reported(const BufferView& view, arctrace_writer_slot& slot,
                           uint32_t cause) {
    const uint64_t reported = A::load_acquire(slot.reported[cause]);  // J2
    if (A::load_relaxed(slot.telling_cause) != cause || !is_reported(view, slot)) {
      return reported;
    }
    const uint64_t until = A::load_relaxed(slot.telling_until);
    return until <= A::load_relaxed(slot.lost[cause]) ? std::max(reported, until)
                                                      : reported;
  }

  // Brings the count up to date, idempotently. REQUIRES: the caller holds the slot, and
  // its owner is dead, or the caller whose call was jumped out of; the owner's blocks are
  // not released yet.
  static void settle(const BufferView& view, arctrace_writer_slot& slot) {
    const uint32_t cause = A::load_relaxed(slot.telling_cause);
    if (cause < ARCTRACE_LOST_CAUSES) {
      A::store_release(slot.reported[cause], reported(view, slot, cause));  // J1
    }
    A::store_relaxed(slot.telling, uint64_t{0});
  }

 private:
  // Whether a LOST record is announced, and committed.
  static bool is_reported(const BufferView& view, arctrace_writer_slot& slot) {
    const uint64_t place = A::load_relaxed(slot.telling);
    const Geometry& geometry = view.geometry();
    if (place < geometry.blocks_offset || place % 4 != 0 ||
        place > geometry.total_size - sizeof(uint32_t)) {
      return false;
    }
    const uint32_t word0 = A::load_acquire(word_at(view.base() + place));  // I2
    return word0 >> ARCTRACE_TYPE_SHIFT == ARCTRACE_TYPE_LOST;  // not in progress
  }
};

}  // namespace arctrace
