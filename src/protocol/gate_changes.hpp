// The last changes of what is recorded, in the control page (SPEC.md BUF-6): whoever
// changes the gate or the live filter notes when, and the recorder makes ENABLED records
// of that.
#pragma once

#include <arctrace/format.h>

#include <cstdint>

#include "src/base/shared_atomics.hpp"
#include "src/buffer/buffer_view.hpp"

namespace arctrace {

static_assert(ARCTRACE_GATE_CHANGES_OFFSET ==
              ARCTRACE_LIVE_FILTER_OFFSET + sizeof(arctrace_live_filter));
static_assert(ARCTRACE_GATE_CHANGES_OFFSET + sizeof(arctrace_gate_changes) <=
              ARCTRACE_CPUS_OFFSET);

inline arctrace_gate_changes& gate_changes(const BufferView& view) {
  return *reinterpret_cast<arctrace_gate_changes*>(view.base() +
                                                   ARCTRACE_GATE_CHANGES_OFFSET);
}

// Notes that `gate` holds from `ticks` on.
inline void note_gate_change(const BufferView& view, uint32_t gate, uint64_t ticks) {
  arctrace_gate_changes& changes = gate_changes(view);
  const uint32_t n = IpcAtomics::fetch_add_relaxed(changes.count, uint32_t{1});
  arctrace_gate_change& change = changes.entries[n % ARCTRACE_GATE_CHANGES_KEPT];
  IpcAtomics::store_relaxed(change.round, uint32_t{0});
  IpcAtomics::store_release(change.ticks, ticks);
  IpcAtomics::store_relaxed(change.gate, gate);
  IpcAtomics::store_release(change.round, n + 1);  // S1
}

// Calls use(ticks, gate) for each change after the first `seen` ones that is still kept,
// in order, and returns how many there are now. A change that is being made is left for
// the next call.
template <class Use>
uint32_t for_each_gate_change_untrusted(arctrace_gate_changes& changes, uint32_t seen,
                                        const Use& use) {
  const uint32_t count = IpcAtomics::load_acquire(changes.count);
  if (count - seen > ARCTRACE_GATE_CHANGES_KEPT) {
    seen = count - ARCTRACE_GATE_CHANGES_KEPT;
  }
  for (; seen != count; ++seen) {
    arctrace_gate_change& change = changes.entries[seen % ARCTRACE_GATE_CHANGES_KEPT];
    const uint32_t round = IpcAtomics::load_acquire(change.round);  // S2
    if (round == 0) break;
    if (round != seen + 1) continue;  // another change took its entry
    const uint64_t ticks = IpcAtomics::load_relaxed(change.ticks);
    use(ticks, IpcAtomics::load_relaxed(change.gate));
  }
  return seen;
}

}  // namespace arctrace
