// Cleans up a slot whose owner died, or in which a call was left by a signal handler's
// longjmp: it closes the blocks that the slot names. The collector, the slot's next owner
// and writers in overwrite mode use it.
#pragma once

#include <arctrace/format.h>

#include <cstdint>

#include "src/buffer/buffer_view.hpp"
#include "src/protocol/block_state.hpp"
#include "src/protocol/reported_losses.hpp"
#include "src/protocol/shared_close.hpp"

namespace arctrace {

// The kernel's mark in a slot's lock word (a robust futex), and the bits of its tid.
inline constexpr uint32_t kOwnerDied = 0x40000000u;  // FUTEX_OWNER_DIED
inline constexpr uint32_t kTidMask = 0x3FFFFFFFu;    // FUTEX_TID_MASK
// The lock word while the collector settles a dead owner's slot. A later collector may
// resume that. No kernel gives a thread this tid.
inline constexpr uint32_t kBeingReaped = kOwnerDied | kTidMask;

inline bool is_live(uint32_t lock_word) {
  return lock_word != 0 && (lock_word & kOwnerDied) == 0;
}

template <class A>
class DeadSlot {
 public:
  // Brings the counts of reported losses up to date, closes the blocks that the slot's
  // former owner still owned and clears all names. Idempotent, so it may be resumed after
  // a death half-way. REQUIRES: the caller holds the slot: the lock word is its own tid
  // or kBeingReaped.
  template <class OnClosed>
  static void settle(const BufferView& view, uint32_t slot_index, OnClosed&& on_closed) {
    arctrace_writer_slot& slot = view.slot(slot_index);
    ReportedLosses<A>::settle(view, slot);
    settle_name(view, slot_index, slot.current, on_closed);
    for (uint32_t& name : slot.active) settle_name(view, slot_index, name, on_closed);
    for (uint32_t& name : slot.held) A::store_release(name, uint32_t{0});
  }

  // OWNED -> CLOSED, or RESETTING -> CLOSED, of a block whose state `seen` names a slot
  // with a dead owner. Any process may do it, because a dead owner changes nothing any
  // more, and its slot's next owner can't store the same state word again.
  static bool close_left(const BufferView& view, arctrace_block_header& header,
                         uint64_t seen) {
    const BlockState state = BlockState::unpack(seen);
    BlockState closed = state.with(ARCTRACE_PHASE_CLOSED);
    if (state.phase == ARCTRACE_PHASE_RESETTING) {
      ++closed.generation;  // it may be RESETTING by the same slot once more
    } else if (state.phase != ARCTRACE_PHASE_OWNED) {
      return false;
    }
    if (!A::compare_exchange_acq_rel(header.state, seen, closed.pack())) return false;
    count_closed<A>(view);
    return true;
  }

  // The same as settle() for one name. REQUIRES: the caller holds the slot.
  template <class OnClosed>
  static void settle_name(const BufferView& view, uint32_t slot_index, uint32_t& name,
                          OnClosed&& on_closed) {
    const uint32_t named = A::load_acquire(name);
    if (named != 0 && named <= view.geometry().block_count) {
      arctrace_block_header& header = view.block_header(named - 1);
      // B3 acquire, matches B1.
      uint64_t seen = A::load_acquire(header.state);
      const BlockState state = BlockState::unpack(seen);
      if (state.slot == slot_index && close_left(view, header, seen)) {
        on_closed(named - 1);
      }
    }
    A::store_release(name, uint32_t{0});
  }
};

}  // namespace arctrace
