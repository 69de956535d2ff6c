// The frames that a thread has open, as its hooks reported them, outermost first.
#pragma once

#include <arctrace/format.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/stack/machine_frame.hpp"
#include "src/stack/offset_count.hpp"

namespace arctrace {

struct OpenFrame {
  uint64_t key;  // function address or name key
  MachineFrame frame;

  // Stores a frame here; its location last. REQUIRES: that is 0 until then.
  __attribute__((always_inline)) void store(uint64_t its_key,
                                            const MachineFrame& its_frame) {
    key = its_key;
    if (its_frame.location == 0) {
      // Zeros, most likely, of which gcc stores several at once.
      frame.call_site = its_frame.call_site;
      frame.hook_site = its_frame.hook_site;
      frame.stack_pointer = its_frame.stack_pointer;
      frame.flags = its_frame.flags;
      return;
    }
    // One by one: otherwise gcc puts two values together before it stores them.
    frame.call_site = its_frame.call_site;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    frame.hook_site = its_frame.hook_site;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    frame.stack_pointer = its_frame.stack_pointer;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    frame.flags = its_frame.flags;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    frame.location = its_frame.location;
  }
};

using FrameCount = OffsetCount<OpenFrame, uint32_t>;

// All fields but `depth` hold what earlier calls left there: nothing needs to be cleared.
struct OpenFrames {
  static constexpr uint32_t kMax = ARCTRACE_OPEN_FRAMES_MAX;

  FrameCount depth;   // of open frames; beyond kMax they are only counted
  OpenFrame outside;  // frame_at() for what is around the outermost frame: always zero
  OpenFrame frames[kMax];

  // The depth, read once more although it is the same as before.
  FrameCount depth_anew() const { return depth.load_anew(); }

  // How many of them are kept: the outermost ones.
  uint32_t kept() const { return depth < kMax ? uint32_t{depth} : kMax; }

  // The innermost frame, if it is kept; else null.
  const OpenFrame* innermost() const { return kept_frame_at(depth.previous()); }
  // The frame with index `at`, which may be that before the first, in the same way.
  const OpenFrame* kept_frame_at(FrameCount at) const {
    if (at.offset() >= FrameCount(kMax).offset()) return nullptr;
    const OpenFrame* frame = frame_at(at);
    if (frame == nullptr) __builtin_unreachable();
    return frame;
  }
  // The same, if it belongs to `key`; else null.
  const OpenFrame* innermost(uint64_t key) const {
    const OpenFrame* frame = innermost();
    return frame != nullptr && frame->key == key ? frame : nullptr;
  }

  // The frame with index `at`. REQUIRES: it is kept, or `outside`, which is the one
  // before the first.
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

static_assert(offsetof(OpenFrames, frames) - offsetof(OpenFrames, outside) ==
              sizeof(OpenFrame));

}  // namespace arctrace
