// The kernel writer's shared blocks: each CPU has a chain of its own (bpf/append.h), and
// the collector hands blocks over ahead of need, because a BPF program can't search.
// Where no program may be loaded, the collector writes into them itself.
#pragma once

#include <arctrace/format.h>

#include <cstdint>

#include "src/buffer_view.hpp"
#include "src/protocol/block_state.hpp"
#include "src/protocol/handout.hpp"
#include "src/protocol/shared_chain.hpp"
#include "src/protocol/shared_close.hpp"

namespace arctrace {

// The owner of blocks that the collector is opening for CPUs: no writer's slot.
inline constexpr uint32_t kCollectorSlot = 0xFFFF;

template <class A>
class CpuChain {
 public:
  // Gives the CPU open blocks until it has `wanted` to spare, or there are no more; those
  // that were closed meanwhile are replaced. REQUIRES: the caller is the collector.
  static void hand_over(const BufferView& view, uint32_t cpu, uint32_t wanted,
                        uint64_t ticks) {
    arctrace_cpu_slot& slot = view.cpu_slot(cpu);
    for (uint32_t i = 0; i < wanted && i < ARCTRACE_CPU_SPARES; ++i) {
      uint64_t held = A::load_acquire(slot.spares[i]);
      if (held != 0 && is_open(view, held)) continue;
      uint32_t name = 0;  // of nobody's: a death here is mended by the next collector
      const auto taken = Handout<A>::take(view, kCollectorSlot, name);
      if (!taken) return;
      const uint64_t spare = open(view, *taken, ticks);
      // E2 release, matches E1 (the CPU's read of its chain): the header is visible.
      if (!A::compare_exchange_acq_rel(slot.spares[i], held, spare)) {
        close_shared<A>(view, taken->index, BlockName::generation(spare));
      }
    }
  }

  // Reserves `length` bytes in place of the CPU's programs, in a new block if need be.
  // active[0] names the block until release(). A null place: no block to be had.
  // REQUIRES: the caller is the collector, and there are no programs.
  static SharedReservation reserve(const BufferView& view, uint32_t cpu, uint32_t length,
                                   uint64_t ticks) {
    arctrace_cpu_slot& slot = view.cpu_slot(cpu);
    // All spares may have been overwritten; then one more is opened.
    for (uint32_t tries = 0; tries < ARCTRACE_CPU_SPARES + 2; ++tries) {
      const uint64_t current = A::load_acquire(slot.current);
      if (const SharedReservation got =
              SharedChain<A>::reserve_in(view, slot.active[0], current, length);
          got.place != nullptr) {
        return got;
      }
      uint64_t next = take_spare(slot);
      if (next == 0) {
        hand_over(view, cpu, 1, ticks);
        next = take_spare(slot);
      }
      if (next == 0) break;
      A::store_release(slot.current, next);
    }
    release(view, cpu);
    return {};
  }

  // F1 release, as SharedChain's.
  static void release(const BufferView& view, uint32_t cpu) {
    A::store_release(view.cpu_slot(cpu).active[0], uint32_t{0});
  }

  // Takes all blocks back and closes them. REQUIRES: no program runs any more, but for
  // records that are being written.
  static void close_all(const BufferView& view) {
    for_each_name(view, [&](uint64_t& name) {
      const uint64_t held = A::exchange_acq_rel(name, uint64_t{0});
      if (held != 0 && BlockName::index(held) < view.geometry().block_count) {
        close_shared<A>(view, BlockName::index(held), BlockName::generation(held));
      }
    });
  }

  // Whether a CPU writes in this block, or will.
  static bool is_named(const BufferView& view, uint64_t name) {
    bool found = false;
    for_each_name(view, [&](uint64_t& held) { found |= A::load_acquire(held) == name; });
    return found;
  }

 private:
  static uint64_t take_spare(arctrace_cpu_slot& slot) {
    for (uint64_t& spare : slot.spares) {
      // E1 acquire, matches E2.
      const uint64_t taken = A::exchange_acq_rel(spare, uint64_t{0});
      if (taken != 0) return taken;
    }
    return 0;
  }

  template <class Visit>
  static void for_each_name(const BufferView& view, Visit&& visit) {
    for (uint32_t cpu = 0; cpu < view.geometry().cpu_count; ++cpu) {
      arctrace_cpu_slot& slot = view.cpu_slot(cpu);
      visit(slot.current);
      for (uint64_t& spare : slot.spares) visit(spare);
    }
  }

  static bool is_open(const BufferView& view, uint64_t name) {
    if (BlockName::index(name) >= view.geometry().block_count) return false;
    const BlockState state = BlockState::unpack(
        A::load_acquire(view.block_header(BlockName::index(name)).state));
    return state.phase == ARCTRACE_PHASE_SHARED &&
           state.generation == BlockName::generation(name);
  }

  static uint64_t open(const BufferView& view, const typename Handout<A>::Taken& taken,
                       uint64_t ticks) {
    Handout<A>::open(view, taken,
                     {ARCTRACE_FORM_FULL, ARCTRACE_CLASS_DATA, ARCTRACE_WRITER_KERNEL, 0,
                      0, 0, 0, ticks});
    arctrace_block_header& header = view.block_header(taken.index);
    const BlockState owned = BlockState::unpack(taken.state);
    uint64_t expected = taken.state;
    A::compare_exchange_acq_rel(header.state, expected,
                                owned.with(ARCTRACE_PHASE_SHARED).pack());
    A::store_release(header.next, uint64_t{ARCTRACE_BLOCK_HEADER_SIZE});
    return BlockName::make(owned.generation, taken.index);
  }
};

}  // namespace arctrace
