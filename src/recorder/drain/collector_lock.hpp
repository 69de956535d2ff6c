// The right to be a buffer's collector: its robust lock, held by a thread of our own, so
// that it is free when this process is gone, however that comes.
#pragma once

#include <future>
#include <thread>

#include "src/buffer/buffer_view.hpp"
#include "src/recorder/buffer/buffer.hpp"

namespace arctrace {

class CollectorSeat {
 public:
  explicit CollectorSeat(const BufferView& view);
  CollectorSeat(const CollectorSeat&) = delete;
  CollectorSeat& operator=(const CollectorSeat&) = delete;
  ~CollectorSeat();

  // False: another collector is alive.
  bool taken() const { return taken_; }

 private:
  std::promise<void> leave_;
  std::thread holder_;
  bool taken_ = false;
};

// What a collector that died was copying is complete in the buffer still: DRAINING ->
// CLOSED (BLK-5); a block that it was about to open for a CPU is closed, too; the words
// in which it named the block that it wrote a CPU's record in are cleared.
// REQUIRES: the caller has the seat.
void reclaim_blocks(const Buffer& buffer);

}  // namespace arctrace
