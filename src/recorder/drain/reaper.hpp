// Settles the slots of dead writers for the collector: it closes their blocks, reports
// their end and the losses that they had not reported, and frees the slots.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "src/buffer/buffer_view.hpp"
#include "src/recorder/file/record_builder.hpp"

namespace arctrace {

// Losses are marked as reported in the buffer, and slots freed, only when the file has
// the records (confirm()): if a collector dies before that, the next one reports them
// again. REQUIRES: the caller is the collector.
class Reaper {
 public:
  explicit Reaper(const BufferView& view) : view_(view) {}

  // Adds WRITER_END, TOTALS and LOST records for slots whose owner is dead, and reserves
  // the slots until confirm() or withdraw(). Calls closed(index) for each block that was
  // closed for its dead owner. A slot that is reserved is not for new threads. So of the
  // slots that they could take at most half, rounded up, are settled in one call, until
  // settle_all() was called.
  void settle_dead(RecordBuilder& records, const std::function<void(uint32_t)>& closed);

  // When the slot's owner, who is dead, was last known to live: at the last look whose
  // records the file has and that left no dead slot, or when it began.
  uint64_t alive_ticks(uint32_t slot) const;

  // No thread will need a slot any more.
  void settle_all() { is_last_ = true; }

  // Adds LOST records for the losses that a slot's owner, dead or alive, has not
  // reported.
  void report_losses(RecordBuilder& records, uint32_t slot);

  // The file has the records: marks the losses as reported and frees the slots.
  void confirm();
  // The file could not take the records: the losses stay unreported, and writers may take
  // the slots over.
  void withdraw();

 private:
  struct Reported {
    uint64_t* word;
    uint64_t until;
  };

  void reap(uint32_t slot, RecordBuilder& records,
            const std::function<void(uint32_t)>& closed);

  BufferView view_;
  std::vector<Reported> reported_;
  std::vector<uint32_t> reaped_;
  uint64_t this_look_ticks_ = 0;
  uint64_t last_look_ticks_ = 0;  // confirmed
  uint32_t first_ = 0;            // the slot at which the next call begins
  bool is_last_ = false;
};

// The processes that have a living thread, sorted.
std::vector<uint32_t> living_processes(const BufferView& view);

// How many there are.
size_t distinct_processes(const BufferView& view);

}  // namespace arctrace
