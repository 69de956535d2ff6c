// The open frames of each thread, tracked while records are replayed: the stacks that a
// screen shows, and that the next tick's replay begins with.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "reader/replay/listener.hpp"
#include "reader/replay/replay.hpp"

namespace arctrace::reader {

struct OpenFrame {
  FunctionId function = kUnknownFunction;
  uint64_t key = 0;  // 0: not known
  int64_t start_ns = 0;
  uint32_t count = 1;  // frames that it stands for
  bool is_kernels = false;
  // Of a frame of the kernel's: the type of the record that opened it, and the number of
  // the system call or the lock.
  uint16_t kernel_type = 0;
  uint64_t kernel_value = 0;
  bool is_inherited = false;  // from the parent that forked; the thread does not know it
};

struct OpenStack {
  std::vector<OpenFrame> frames;  // outermost first
  uint32_t coroutine = 0;         // on whose stack the thread runs; 0: its own

  // The body of a STACK record that describes this stack, as far as keys are known.
  std::vector<std::byte> record_body() const;
  // The kernel's records that describe the kernel's frames of this stack: types and
  // bodies.
  std::vector<std::pair<uint16_t, std::vector<std::byte>>> kernel_records() const;
};

// A listener that tracks open frames, and forwards everything to another listener.
class LiveStacks : public ReplayListener {
 public:
  // `next` may be null.
  explicit LiveStacks(ReplayListener* next) : next_(next) {}

  // To be called before the replay gets the record. `is_carried`: the record was made
  // from the stack at the end of an earlier tick, whose frames are not those that fork
  // copied.
  void before(Replay& replay, const Record& record, bool is_carried = false);

  const absl::flat_hash_map<ThreadIndex, OpenStack>& stacks() const { return stacks_; }

  uint64_t frame_opened(const FrameInfo& frame) override;
  void frame_closed(const FrameInfo& frame, uint64_t token, bool shown) override;
  void frame_adopted(const FrameInfo& frame) override;
  void point(const PointInfo& point) override;
  void args(const ArgsInfo& args) override;

 private:
  uint64_t key_of(const FrameInfo& frame);
  std::vector<OpenFrame>& frames_of(const FrameInfo& frame);

  ReplayListener* const next_;
  absl::flat_hash_map<ThreadIndex, OpenStack> stacks_;
  // The stacks on which threads do not run at present, by coroutine.
  absl::flat_hash_map<ThreadIndex, absl::flat_hash_map<uint32_t, std::vector<OpenFrame>>>
      suspended_;
  // The rest is of the record that is replayed.
  Replay* replay_ = nullptr;
  bool is_kernels_ = false, is_carried_ = false;
  uint16_t kernel_type_ = 0;
  uint64_t kernel_value_ = 0;
  std::vector<uint64_t> keys_;  // that the record names, outermost first
  size_t next_key_ = 0;
};

}  // namespace arctrace::reader
