// The kernel writer's shared blocks. Each CPU has a chain of its own, whose blocks the
// BPF programs open and fill (bpf/append.h). This is the recorder's part: it frees and
// closes blocks for the CPUs, and writes itself where BPF programs can't be loaded.
#pragma once

#include <arctrace/format.h>

#include <cstdint>
#include <optional>

#include "src/buffer/buffer_view.hpp"
#include "src/protocol/block_state.hpp"
#include "src/protocol/handout.hpp"
#include "src/protocol/overwrite.hpp"
#include "src/protocol/shared_chain.hpp"

namespace arctrace {

template <class A>
class CpuChain {
 public:
  // In overwrite mode, frees the next blocks in the order of the hand-out whose contents
  // may be overwritten, until `wanted` of them are free. BPF programs take free blocks
  // only, because they can't check whether a block may be overwritten. REQUIRES: the
  // caller is the recorder.
  static void free_ahead(const BufferView& view, uint32_t wanted) {
    const uint32_t count = view.geometry().block_count;
    const uint64_t next = A::load_relaxed(view.control().next);
    for (uint32_t i = 0; i < count && wanted > 0; ++i) {
      if (Overwrite<A>::make_free(view, next + i)) --wanted;
    }
  }

  // Lets the CPUs that found no free block search again.
  static void search_again(const BufferView& view) {
    for (uint32_t cpu = 0; cpu < view.geometry().cpu_count; ++cpu) {
      A::store_relaxed(view.cpu_slot(cpu).searched, uint64_t{0});
    }
  }

  // Reserves `length` bytes as the CPU's programs would, in a new block if necessary.
  // active[0] names the block until release(). The record is null if there is no block.
  // REQUIRES: the caller is the collector, and no programs are loaded.
  static SharedReservation reserve(const BufferView& view, uint32_t cpu, uint32_t length,
                                   uint64_t ticks) {
    arctrace_cpu_slot& slot = view.cpu_slot(cpu);
    const uint64_t current = A::load_acquire(slot.current);
    if (const SharedReservation got =
            SharedChain<A>::reserve_in(view, slot.active[0], current, length);
        got.record != nullptr) {
      return got;
    }
    std::optional<typename Handout<A>::Taken> taken;
    if (!Handout<A>::rest_is_for_definitions(view)) {
      taken = Handout<A>::take(view, ARCTRACE_KERNEL_SLOT, slot.active[0]);
    }
    if (!taken) {
      release(view, cpu);
      return {};
    }
    return SharedChain<A>::open_with(view, slot.current, current, *taken, length,
                                     {ARCTRACE_FORM_FULL, ARCTRACE_CLASS_DATA,
                                      ARCTRACE_WRITER_KERNEL, 0, 0, 0, 0, ticks});
  }

  // F1 release, as in SharedChain::release().
  static void release(const BufferView& view, uint32_t cpu) {
    A::store_release(view.cpu_slot(cpu).active[0], uint32_t{0});
  }

  // Takes the open blocks from all CPUs and closes them. REQUIRES: no program begins a
  // record any more.
  static void close_all(const BufferView& view) {
    for (uint32_t cpu = 0; cpu < view.geometry().cpu_count; ++cpu) {
      const uint64_t named = A::exchange_acq_rel(view.cpu_slot(cpu).current, uint64_t{0});
      if (named != 0 && BlockName::index(named) < view.geometry().block_count) {
        close_shared<A>(view, BlockName::index(named), BlockName::generation(named));
      }
    }
  }

  // Whether `name` is the open block of a CPU.
  static bool is_named(const BufferView& view, uint64_t name) {
    bool found = false;
    for (uint32_t cpu = 0; cpu < view.geometry().cpu_count; ++cpu) {
      found |= A::load_acquire(view.cpu_slot(cpu).current) == name;
    }
    return found;
  }
};

}  // namespace arctrace
