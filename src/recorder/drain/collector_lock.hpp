// The collector lock: a robust lock in the control page, which at most one recorder
// holds. A thread of its own holds it, so that the kernel releases it however the process
// ends. The recording commands take it before they start a Recorder.
#pragma once

#include <future>
#include <thread>

#include "src/buffer/buffer_view.hpp"
#include "src/recorder/buffer/buffer.hpp"

namespace arctrace {

class CollectorLock {
 public:
  explicit CollectorLock(const BufferView& view);
  CollectorLock(const CollectorLock&) = delete;
  CollectorLock& operator=(const CollectorLock&) = delete;
  ~CollectorLock();

  // False: another collector is alive.
  bool is_held() const { return is_held_; }

 private:
  std::promise<void> release_;
  std::thread holder_;
  bool is_held_ = false;
};

// Makes up for the death of an earlier collector. A block that it was copying is still
// complete in the buffer: DRAINING -> CLOSED (BLK-5). A block that it was about to open
// for a CPU is closed too, and the words that name the block in which it wrote a CPU's
// record are cleared.
// REQUIRES: the caller holds the collector lock.
void reclaim_blocks(const Buffer& buffer);

}  // namespace arctrace
