// The kernel writer's shared blocks: each CPU has a chain of its own, which its programs
// open and fill (bpf/append.h). What others have to do with it; and where no program may
// be loaded, how the collector writes in their place.
#pragma once

#include <arctrace/format.h>

#include <cstdint>

#include "src/buffer/buffer_view.hpp"
#include "src/protocol/block_state.hpp"
#include "src/protocol/handout.hpp"
#include "src/protocol/overwrite.hpp"
#include "src/protocol/shared_chain.hpp"
#include "src/protocol/shared_close.hpp"

namespace arctrace {

template <class A>
class CpuChain {
 public:
  // In overwrite mode: makes the next blocks in turn free, as far as what is in them may
  // go, until `wanted` are; a BPF program can't judge that, and takes free ones only.
  // REQUIRES: the caller is the recorder.
  static void free_ahead(const BufferView& view, uint32_t wanted) {
    const uint32_t count = view.geometry().block_count;
    const uint64_t next = A::load_relaxed(view.control().next);
    for (uint32_t i = 0; i < count && wanted > 0; ++i) {
      if (Overwrite<A>::make_free(view, static_cast<uint32_t>((next + i) % count))) {
        --wanted;
      }
    }
  }

  // A CPU that has looked at all blocks in vain asks no more until this.
  static void search_again(const BufferView& view) {
    for (uint32_t cpu = 0; cpu < view.geometry().cpu_count; ++cpu) {
      A::store_relaxed(view.cpu_slot(cpu).searched, uint64_t{0});
    }
  }

  // Reserves `length` bytes in place of the CPU's programs, in a new block if need be.
  // active[0] names the block until release(). A null place: no block to be had.
  // REQUIRES: the caller is the collector, and there are no programs.
  static SharedReservation reserve(const BufferView& view, uint32_t cpu, uint32_t length,
                                   uint64_t ticks) {
    arctrace_cpu_slot& slot = view.cpu_slot(cpu);
    const uint64_t current = A::load_acquire(slot.current);
    if (const SharedReservation got =
            SharedChain<A>::reserve_in(view, slot.active[0], current, length);
        got.place != nullptr) {
      return got;
    }
    const auto taken = Handout<A>::take(view, ARCTRACE_KERNEL_SLOT, slot.active[0]);
    if (!taken) {
      release(view, cpu);
      return {};
    }
    return SharedChain<A>::open_with(view, slot.current, current, *taken, length,
                                     {ARCTRACE_FORM_FULL, ARCTRACE_CLASS_DATA,
                                      ARCTRACE_WRITER_KERNEL, 0, 0, 0, 0, ticks});
  }

  // F1 release, as SharedChain's.
  static void release(const BufferView& view, uint32_t cpu) {
    A::store_release(view.cpu_slot(cpu).active[0], uint32_t{0});
  }

  // Takes all blocks from their CPUs and closes them. REQUIRES: no program begins any
  // more.
  static void close_all(const BufferView& view) {
    for (uint32_t cpu = 0; cpu < view.geometry().cpu_count; ++cpu) {
      const uint64_t held = A::exchange_acq_rel(view.cpu_slot(cpu).current, uint64_t{0});
      if (held != 0 && BlockName::index(held) < view.geometry().block_count) {
        close_shared<A>(view, BlockName::index(held), BlockName::generation(held));
      }
    }
  }

  // Whether it is the open block of a CPU.
  static bool is_named(const BufferView& view, uint64_t name) {
    bool found = false;
    for (uint32_t cpu = 0; cpu < view.geometry().cpu_count; ++cpu) {
      found |= A::load_acquire(view.cpu_slot(cpu).current) == name;
    }
    return found;
  }
};

}  // namespace arctrace
