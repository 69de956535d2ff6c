// What the collector does for writers that can't any more: the blocks of the dead are
// closed, their end and what they had not said of their losses is said, their slots are
// free again.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "src/buffer/buffer_view.hpp"
#include "src/recorder/file/record_builder.hpp"

namespace arctrace {

// The buffer learns what was said only when the file has it: a collector that dies
// between is followed by one that says it again. REQUIRES: the caller is the collector.
class Reaper {
 public:
  explicit Reaper(const BufferView& view) : view_(view) {}

  // Says WRITER_END, TOTALS and LOST of all dead slots; nobody else takes them now. Calls
  // closed(index) for each block that was closed for its dead owner.
  void settle_dead(RecordBuilder& said, const std::function<void(uint32_t)>& closed);

  // Says LOST for what a slot's owner, dead or alive, has not said.
  void say_losses(RecordBuilder& said, uint32_t slot);

  // The file has what was said: those losses are reported, the dead ones' slots are free.
  void confirm();
  // It has not: nothing is reported, writers may take the slots of the dead.
  void withdraw();

 private:
  struct Reported {
    uint64_t* word;
    uint64_t until;
  };

  void reap(uint32_t slot, RecordBuilder& said,
            const std::function<void(uint32_t)>& closed);

  BufferView view_;
  std::vector<Reported> reported_;
  std::vector<uint32_t> reaped_;
};

// The processes that have a living thread, sorted.
std::vector<uint32_t> living_processes(const BufferView& view);

}  // namespace arctrace
