// Recycles blocks for the collector, CLOSED -> DRAINING -> FREE, and answers whether a
// writer may still write to a block, on which draining and overwriting depend.
#pragma once

#include <arctrace/format.h>

#include <atomic>
#include <cstdint>

#include "src/buffer/buffer_view.hpp"
#include "src/protocol/block_state.hpp"
#include "src/protocol/dead_slot.hpp"

namespace arctrace {

template <class A>
class Recycle {
 public:
  // Calls mark(index) for each block that a live writer names in active[] or held[].
  // A block that was CLOSED before this call and is not marked has no writer left: the
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
      if (is_held(view, i, index)) return true;
    }
    bool found = false;
    for_each_cpu_name(
        view, [&](uint32_t& name) { found |= A::load_acquire(name) == index + 1; });
    return found;
  }

  // Whether the living owner of a slot holds a reserved record in this block. In an
  // exclusive block, only the block's owner can.
  static bool is_held(const BufferView& view, uint32_t slot_index, uint32_t index) {
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
