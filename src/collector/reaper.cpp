#include "src/collector/reaper.hpp"

#include <algorithm>

#include "src/clock.hpp"
#include "src/collector/session_records.hpp"
#include "src/loss.hpp"
#include "src/protocol/dead_slot.hpp"
#include "src/protocol/recycle.hpp"

namespace arctrace {
namespace {

using A = IpcAtomics;

// REQUIRES: the slot's lock word is kBeingReaped, so nobody takes the slot meanwhile.
void reap(const BufferView& view, uint32_t index, RecordBuilder& said,
          const std::function<void(uint32_t)>& closed) {
  arctrace_writer_slot& slot = view.slot(index);
  DeadSlot<A>::settle(view, index, closed);
  const uint32_t writer = A::load_relaxed(slot.writer);
  const uint64_t now = read_ticks(view.geometry().clock);
  if (writer != 0) {
    say_writer_end(said, now, writer);
    say_totals(said, now, slot);
  }
  report_losses(slot, [&](uint32_t cause, uint64_t count) {
    say_lost(said, now, writer, cause, ARCTRACE_LOST_RESIDUAL, count);
    return true;
  });
  A::store_relaxed(slot.writer, uint32_t{0});
  A::store_relaxed(slot.process, uint32_t{0});
  A::store_relaxed(slot.tid, uint32_t{0});
  A::store_release(slot.lock, uint32_t{0});
}

}  // namespace

std::vector<uint32_t> reap_dead(const BufferView& view, RecordBuilder& said,
                                const std::function<void(uint32_t)>& closed) {
  std::vector<uint32_t> live;
  const uint32_t used = Recycle<A>::slots_used(view);
  for (uint32_t i = 0; i < used; ++i) {
    arctrace_writer_slot& slot = view.slot(i);
    uint32_t word = A::load_acquire(slot.lock);
    if (is_live(word)) {
      live.push_back(A::load_relaxed(slot.process));
    } else if (word == kBeingReaped ||
               (word != 0 &&
                A::compare_exchange_acq_rel(slot.lock, word, uint32_t{kBeingReaped}))) {
      reap(view, i, said, closed);
    }
  }
  std::sort(live.begin(), live.end());
  return live;
}

}  // namespace arctrace
