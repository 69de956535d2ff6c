// Hints for writers that look for a free block: where many blocks in a row are in use, as
// those of idle threads are, a writer steps over all of them at once.
#pragma once

#include <cstdint>
#include <vector>

#include "src/buffer/buffer_view.hpp"

namespace arctrace {

// In a buffer of so few blocks that a writer looks at all of them there are no hints.
// REQUIRES: the caller is the collector.
class BusyRuns {
 public:
  explicit BusyRuns(const BufferView& view);

  // What the collector finds in a round, and what it makes of it.
  void note(uint32_t index, bool is_free) {
    if (!busy_.empty()) busy_[index] = !is_free;
  }

  // Stores the hints. Costs a look at a byte for each block, and a store for each hint
  // that has changed.
  void publish() const;

 private:
  BufferView view_;
  std::vector<bool> busy_;  // by block
};

}  // namespace arctrace
