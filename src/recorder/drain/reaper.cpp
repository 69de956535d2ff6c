#include "src/recorder/drain/reaper.hpp"

#include <algorithm>

#include "src/buffer/clock.hpp"
#include "src/protocol/dead_slot.hpp"
#include "src/protocol/losses.hpp"
#include "src/protocol/recycle.hpp"
#include "src/recorder/file/session_records.hpp"

namespace arctrace {

void Reaper::settle_dead(RecordBuilder& records,
                         const std::function<void(uint32_t)>& closed) {
  const uint64_t now = read_ticks(view_.geometry().clock);
  const uint32_t used = Recycle<IpcAtomics>::slots_used(view_);
  uint32_t to_take = view_.geometry().slot_count - used;
  std::vector<uint32_t> dead;
  for (uint32_t k = 0; k < used; ++k) {
    const uint32_t i = (first_ + k) % used;
    const uint32_t word = IpcAtomics::load_acquire(view_.slot(i).lock);
    if (word == kBeingReaped) {  // left so by a collector that died
      reap(i, records, closed);
    } else if (!is_live(word)) {
      ++to_take;
      if (word != 0) dead.push_back(i);
    }
  }
  const size_t most = is_last_ ? dead.size() : to_take - to_take / 2;
  const bool leaves_some = dead.size() > most;
  if (leaves_some) {
    first_ = dead[most];
    dead.resize(most);
  }
  for (const uint32_t i : dead) {
    uint32_t& lock = view_.slot(i).lock;
    uint32_t word = IpcAtomics::load_acquire(lock);
    if (word != 0 && !is_live(word) &&
        IpcAtomics::compare_exchange_acq_rel(lock, word, uint32_t{kBeingReaped})) {
      reap(i, records, closed);
    }
  }
  // Owners of the slots that are left may have died before `now`.
  if (!leaves_some) this_look_ticks_ = now;
}

void Reaper::reap(uint32_t index, RecordBuilder& records,
                  const std::function<void(uint32_t)>& closed) {
  arctrace_writer_slot& slot = view_.slot(index);
  DeadSlot<IpcAtomics>::settle(view_, index, closed);
  if (const uint32_t writer = IpcAtomics::load_relaxed(slot.writer); writer != 0) {
    const uint64_t now = read_ticks(view_.geometry().clock);
    add_writer_end(records, now, writer, alive_ticks(index));
    add_totals(records, now, view_, slot);
  }
  report_losses(records, index);
  reaped_.push_back(index);
}

uint64_t Reaper::alive_ticks(uint32_t index) const {
  const uint64_t started = IpcAtomics::load_relaxed(view_.slot(index).start_ticks);
  return std::min(std::max(last_look_ticks_, started),
                  read_ticks(view_.geometry().clock));
}

void Reaper::report_losses(RecordBuilder& records, uint32_t index) {
  arctrace_writer_slot& slot = view_.slot(index);
  const uint64_t now = read_ticks(view_.geometry().clock);
  for_each_unreported_loss(slot, [&](uint32_t cause, uint64_t count) {
    add_lost(records, now, IpcAtomics::load_relaxed(slot.writer), cause,
             ARCTRACE_LOST_RESIDUAL, count, IpcAtomics::load_relaxed(slot.start_ticks));
    uint64_t& reported = slot.reported[cause];
    reported_.push_back({&reported, IpcAtomics::load_relaxed(reported) + count});
  });
}

void Reaper::confirm() {
  last_look_ticks_ = this_look_ticks_;
  // J1 release, matches J2.
  for (const Reported& loss : reported_)
    IpcAtomics::store_release(*loss.word, loss.until);
  reported_.clear();
  for (const uint32_t index : reaped_) {
    arctrace_writer_slot& slot = view_.slot(index);
    IpcAtomics::store_relaxed(slot.writer, uint32_t{0});
    IpcAtomics::store_relaxed(slot.process, uint32_t{0});
    IpcAtomics::store_relaxed(slot.tid, uint32_t{0});
    IpcAtomics::store_release(slot.lock, uint32_t{0});
  }
  reaped_.clear();
}

void Reaper::withdraw() {
  reported_.clear();
  for (const uint32_t index : reaped_) {
    IpcAtomics::store_release(view_.slot(index).lock, uint32_t{kOwnerDied});
  }
  reaped_.clear();
}

std::vector<uint32_t> living_processes(const BufferView& view) {
  std::vector<uint32_t> living;
  const uint32_t used = Recycle<IpcAtomics>::slots_used(view);
  for (uint32_t i = 0; i < used; ++i) {
    arctrace_writer_slot& slot = view.slot(i);
    if (is_live(IpcAtomics::load_acquire(slot.lock))) {
      living.push_back(IpcAtomics::load_relaxed(slot.process));
    }
  }
  std::sort(living.begin(), living.end());
  return living;
}

size_t distinct_processes(const BufferView& view) {
  std::vector<uint32_t> living = living_processes(view);
  living.erase(std::unique(living.begin(), living.end()), living.end());
  return living.size();
}

}  // namespace arctrace
