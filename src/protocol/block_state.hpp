// The states of a block (format.h), and the steps that processes other than its writer
// take with it: they close it for a writer that left it full, abandoned it or died; the
// collector recycles it, CLOSED -> DRAINING -> FREE, once no writer may still write to
// it.
#pragma once

#include <arctrace/format.h>

#include <atomic>
#include <cstdint>

#include "src/buffer/buffer_view.hpp"
#include "src/protocol/losses.hpp"

namespace arctrace {

// Packs and unpacks a block's state word: generation, owner slot and phase (format.h).
struct BlockState {
  uint32_t generation;
  uint32_t slot;
  uint32_t phase;  // enum arctrace_phase if the word is not damaged

  static BlockState unpack(uint64_t word) {
    return {static_cast<uint32_t>(word >> 32),
            static_cast<uint32_t>(word >> 16) & 0xFFFFu,
            static_cast<uint32_t>(word & 0xFFu)};
  }
  uint64_t pack() const {
    return uint64_t{generation} << 32 | uint64_t{slot} << 16 | phase;
  }
  BlockState with(uint32_t next) const { return {generation, slot, next}; }
};

// A word that names a block in one generation (as control.shared_current does); 0: none.
struct BlockName {
  static uint64_t make(uint32_t generation, uint32_t index) {
    return uint64_t{generation} << 32 | (index + 1);
  }
  // The index is untrusted; check its bound before use. REQUIRES: name != 0.
  static uint32_t index(uint64_t name) { return static_cast<uint32_t>(name) - 1; }
  static uint32_t generation(uint64_t name) { return static_cast<uint32_t>(name >> 32); }
};

// The number of blocks in use, by two counts that only grow: blocks that were taken, and
// blocks that were freed, or in overwrite mode closed. The counts may lack steps whose
// thread died, or jumped away, between the step and its count: if `taken` lacks one the
// difference may be below 0, and then none is in use.
template <class A>
uint64_t blocks_in_use(arctrace_control& control) {
  const uint64_t freed = A::load_relaxed(control.freed);
  const uint64_t used = A::load_relaxed(control.taken) - freed;
  return static_cast<int64_t>(used) < 0 ? 0 : used;
}

// In overwrite mode a closed block may be taken, so it counts as freed: a writer that
// found no block searches again when the count has changed.
template <class A>
void count_closed(const BufferView& view) {
  if (view.geometry().mode == ARCTRACE_MODE_OVERWRITE) {
    A::fetch_add_relaxed(view.control().freed, uint64_t{1});
  }
}

// SHARED -> CLOSED: a writer closes a shared block that it finds full, the collector one
// that is abandoned. First all later reservations in the block are made to fail; then the
// state changes, if the block still has that generation. Any process may call it, any
// number of times.
template <class A>
void close_shared(const BufferView& view, uint32_t index, uint32_t generation) {
  arctrace_block_header& header = view.block_header(index);
  // G1 acq_rel: every earlier reservation is visible, with its writer's name.
  A::fetch_add_acq_rel(header.next, uint64_t{view.geometry().block_size});
  uint64_t seen = A::load_acquire(header.state);
  const BlockState state = BlockState::unpack(seen);
  if (state.phase != ARCTRACE_PHASE_SHARED || state.generation != generation) return;
  if (A::compare_exchange_acq_rel(header.state, seen,
                                  state.with(ARCTRACE_PHASE_CLOSED).pack())) {
    count_closed<A>(view);
  }
}

// The kernel's mark in a slot's lock word (a robust futex), and the bits of its tid.
inline constexpr uint32_t kOwnerDied = 0x40000000u;  // FUTEX_OWNER_DIED
inline constexpr uint32_t kTidMask = 0x3FFFFFFFu;    // FUTEX_TID_MASK
// The lock word while the collector reaps a dead owner's slot. A later collector may
// resume that. No kernel gives a thread this tid.
inline constexpr uint32_t kBeingReaped = kOwnerDied | kTidMask;

inline bool is_live(uint32_t lock_word) {
  return lock_word != 0 && (lock_word & kOwnerDied) == 0;
}

// Cleans up a slot whose owner died, or in which a signal handler's longjmp abandoned a
// call: closes the blocks that the slot names. The collector, the slot's next owner and
// writers in overwrite mode use it.
template <class A>
class DeadSlot {
 public:
  // Brings the counts of losses that LOST records report up to date, closes the blocks
  // that the slot's former owner still owned and clears all names. It is idempotent, so
  // it may be resumed after a death half-way. REQUIRES: the caller has the slot: the lock
  // word is its own tid or kBeingReaped.
  template <class OnClosed>
  static void clean_up(const BufferView& view, uint32_t slot_index,
                       OnClosed&& on_closed) {
    arctrace_writer_slot& slot = view.slot(slot_index);
    ReportedLosses<A>::update(view, slot);
    close_named(view, slot_index, slot.current, on_closed);
    for (uint32_t& name : slot.active) close_named(view, slot_index, name, on_closed);
    for (uint32_t& name : slot.held) A::store_release(name, uint32_t{0});
  }

  // OWNED -> CLOSED, or RESETTING -> CLOSED, of a block whose state `seen` names a slot
  // with a dead owner. Any process may do it, because a dead owner changes nothing any
  // more, and its slot's next owner can't store the same state word again.
  static bool close_for_owner(const BufferView& view, arctrace_block_header& header,
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

  // As clean_up(), for one name. REQUIRES: the caller has the slot.
  template <class OnClosed>
  static void close_named(const BufferView& view, uint32_t slot_index, uint32_t& name,
                          OnClosed&& on_closed) {
    const uint32_t named = A::load_acquire(name);
    if (named != 0 && named <= view.geometry().block_count) {
      arctrace_block_header& header = view.block_header(named - 1);
      // B3 acquire, matches B1.
      uint64_t seen = A::load_acquire(header.state);
      const BlockState state = BlockState::unpack(seen);
      if (state.slot == slot_index && close_for_owner(view, header, seen)) {
        on_closed(named - 1);
      }
    }
    A::store_release(name, uint32_t{0});
  }
};

// Recycles blocks for the collector, CLOSED -> DRAINING -> FREE, and answers whether a
// writer may still write to a block, on which draining and overwriting depend.
template <class A>
class Recycle {
 public:
  // Calls mark(index) for each block that a live writer names in active[] or held[]. A
  // block that was CLOSED before this call and is not marked has no writer any more: the
  // reservations in it ended before CLOSED was seen (G1), and each writer named the block
  // until its record was committed (B2, F1).
  template <class Mark>
  static void mark_named(const BufferView& view, Mark&& mark) {
    for_each_live_slot(view, [&](arctrace_writer_slot& slot) {
      for (uint32_t& name : slot.active) mark_name(view, A::load_acquire(name), mark);
      for (uint32_t& name : slot.held) mark_name(view, A::load_acquire(name), mark);
    });
    for_each_cpu_name(
        view, [&](uint32_t& name) { mark_name(view, A::load_acquire(name), mark); });
  }

  // Calls visit(word) for each word in which a live writer names a block in which it is
  // reserving, or has not committed its record yet.
  template <class Visit>
  static void for_each_active(const BufferView& view, Visit&& visit) {
    for_each_live_slot(view, [&](arctrace_writer_slot& slot) {
      for (uint32_t& name : slot.active) visit(name);
    });
    for_each_cpu_name(view, visit);
  }

  // Whether mark_named() would mark this block.
  static bool is_named(const BufferView& view, uint32_t index) {
    const uint32_t used = slots_used(view);
    for (uint32_t i = 0; i < used; ++i) {
      arctrace_writer_slot& slot = view.slot(i);
      if (!is_live(A::load_acquire(slot.lock))) continue;
      for (uint32_t& name : slot.active) {
        if (A::load_acquire(name) == index + 1) return true;
      }
      if (is_pinned(view, i, index)) return true;
    }
    bool found = false;
    for_each_cpu_name(
        view, [&](uint32_t& name) { found |= A::load_acquire(name) == index + 1; });
    return found;
  }

  // Whether the living owner of a slot has a record reserved in place in this block. In
  // an exclusive block, only the block's owner can.
  static bool is_pinned(const BufferView& view, uint32_t slot_index, uint32_t index) {
    arctrace_writer_slot& slot = view.slot(slot_index);
    if (!is_live(A::load_acquire(slot.lock))) return false;
    for (uint32_t& name : slot.held) {
      if (A::load_acquire(name) == index + 1) return true;
    }
    return false;
  }

  static uint32_t slots_used(const BufferView& view) {
    const uint32_t next = A::load_acquire(view.control().slot_next);
    return next < view.geometry().slot_count ? next : view.geometry().slot_count;
  }

  // Whether no slot has changed hands so far: threads have asked for no more slots than
  // there are, and each took the one that it asked for.
  static bool each_slot_has_one_owner(const BufferView& view) {
    return A::load_acquire(view.control().slot_next) < view.geometry().slot_count;
  }

  static BlockState state(const BufferView& view, uint32_t index) {
    // D2 acquire, matches D1.
    return BlockState::unpack(A::load_acquire(view.block_header(index).state));
  }

  // CLOSED -> DRAINING; false if the block is not CLOSED in that generation.
  static bool begin_drain(const BufferView& view, uint32_t index, BlockState closed) {
    uint64_t expected = closed.pack();
    return A::compare_exchange_acq_rel(view.block_header(index).state, expected,
                                       closed.with(ARCTRACE_PHASE_DRAINING).pack());
  }

  // DRAINING -> CLOSED: the block could not be written. REQUIRES: we made it DRAINING.
  static void cancel_drain(const BufferView& view, uint32_t index, BlockState closed) {
    A::store_release(view.block_header(index).state, closed.pack());
  }

  // Refills the bytes from the magic up to `used` and frees the block.
  // REQUIRES: we made it DRAINING; everything from `used` on is 0xff.
  static void finish_drain(const BufferView& view, uint32_t index, uint32_t used) {
    arctrace_block_header& header = view.block_header(index);
    wipe(view, index, used);
    const BlockState now = BlockState::unpack(A::load_relaxed(header.state));
    // A2 release: the refill is visible to the writer that takes the block.
    A::store_release(header.state,
                     BlockState{now.generation + 1, 0, ARCTRACE_PHASE_FREE}.pack());
    A::fetch_add_relaxed(view.control().freed, uint64_t{1});
  }

  // Refills a block that no other process writes to, from its magic on. A reader that
  // finds the header unchanged after it has copied the block knows that its records are
  // whole.
  static void wipe(const BufferView& view, uint32_t index, uint32_t used) {
    arctrace_block_header& header = view.block_header(index);
    A::store_relaxed(header.magic, uint32_t{ARCTRACE_FILL});
    std::atomic_thread_fence(std::memory_order_release);  // the magic goes first
    A::fill_ones(view.block(index) + kIdentityOffset, used - kIdentityOffset);
    A::store_release(header.next, uint64_t{view.geometry().block_size});
  }

  static constexpr uint32_t kIdentityOffset = offsetof(arctrace_block_header, magic);

 private:
  // The words of all CPUs count, because the kernel writer does not die.
  template <class Visit>
  static void for_each_cpu_name(const BufferView& view, Visit&& visit) {
    for (uint32_t cpu = 0; cpu < view.geometry().cpu_count; ++cpu) {
      for (uint32_t& name : view.cpu_slot(cpu).active) visit(name);
    }
  }

  template <class Visit>
  static void for_each_live_slot(const BufferView& view, Visit&& visit) {
    const uint32_t used = slots_used(view);
    for (uint32_t i = 0; i < used; ++i) {
      arctrace_writer_slot& slot = view.slot(i);
      if (is_live(A::load_acquire(slot.lock))) visit(slot);
    }
  }

  template <class Mark>
  static void mark_name(const BufferView& view, uint32_t named, Mark&& mark) {
    if (named != 0 && named <= view.geometry().block_count) mark(named - 1);
  }
};

}  // namespace arctrace
