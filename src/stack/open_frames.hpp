// The frames that a thread has open, as its hooks reported them, outermost first.
#pragma once

#include <arctrace/format.h>

#include <atomic>
#include <cstdint>

#include "src/stack/machine_frame.hpp"

namespace arctrace {

struct OpenFrame {
  uint64_t key;  // function address or name key
  MachineFrame frame;

  // Stores a frame here; its location last. REQUIRES: that is 0 until then.
  __attribute__((always_inline)) void store(uint64_t its_key,
                                            const MachineFrame& its_frame) {
    key = its_key;
    frame.stack_pointer = its_frame.stack_pointer;
    frame.call_site = its_frame.call_site;
    frame.hook_site = its_frame.hook_site;
    frame.flags = its_frame.flags;
    if (its_frame.location == 0) return;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    frame.location = its_frame.location;
  }
};

// A number of frames, kept as the offset of the frame with that index, so that the fast
// path need not compute where it stands.
class FrameCount {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr FrameCount(uint32_t count = 0)
      : offset_(uint64_t{count} * sizeof(OpenFrame)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr operator uint32_t() const {
    return static_cast<uint32_t>(offset_ / sizeof(OpenFrame));
  }
  constexpr uint64_t offset() const { return offset_; }  // in bytes
  constexpr FrameCount next() const { return at_offset(offset_ + sizeof(OpenFrame)); }
  // One less; of none, more than there can be.
  constexpr FrameCount previous() const { return at_offset(offset_ - sizeof(OpenFrame)); }

 private:
  static constexpr FrameCount at_offset(uint64_t offset) {
    FrameCount made;
    made.offset_ = offset;
    return made;
  }

  uint64_t offset_;
};

// All fields but `depth` hold what earlier calls left there: nothing needs to be cleared.
struct OpenFrames {
  static constexpr uint32_t kMax = ARCTRACE_OPEN_FRAMES_MAX;

  FrameCount depth;  // of open frames; beyond kMax they are only counted
  OpenFrame frames[kMax];

  // How many of them are kept: the outermost ones.
  uint32_t kept() const { return depth < kMax ? uint32_t{depth} : kMax; }

  // The innermost frame, if it is kept and belongs to `key`; else null.
  const OpenFrame* innermost(uint64_t key) const {
    const FrameCount at = depth.previous();
    if (at.offset() >= FrameCount(kMax).offset()) return nullptr;
    const OpenFrame* frame = frame_at(at);
    return frame->key == key ? frame : nullptr;
  }

  // The frame with index `at`. REQUIRES: it is kept.
  const OpenFrame* frame_at(FrameCount at) const {
    return reinterpret_cast<const OpenFrame*>(reinterpret_cast<uintptr_t>(frames) +
                                              at.offset());
  }
  OpenFrame* frame_at(FrameCount at) {
    return reinterpret_cast<OpenFrame*>(reinterpret_cast<uintptr_t>(frames) +
                                        at.offset());
  }

  // Where the frame with index `at` is kept; null: it is only counted.
  OpenFrame* slot(uint32_t at) { return at < kMax ? &frames[at] : nullptr; }

  // Until the frame with index `at` is stored, nothing is known of it.
  void forget_location(uint32_t at) {
    if (OpenFrame* to = slot(at); to != nullptr) to->frame.location = 0;
  }

  // Stores a frame at index `at`, without a change of the depth. REQUIRES: its location
  // was forgotten.
  void store(uint32_t at, uint64_t key, const MachineFrame& frame) {
    if (OpenFrame* to = slot(at); to != nullptr) to->store(key, frame);
  }
};

}  // namespace arctrace
