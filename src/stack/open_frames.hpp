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

  // Stores a frame here; its location last.
  void store(uint64_t its_key, const MachineFrame& its_frame) {
    key = its_key;
    frame.stack_pointer = its_frame.stack_pointer;
    frame.call_site = its_frame.call_site;
    frame.hook_site = its_frame.hook_site;
    frame.flags = its_frame.flags;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    frame.location = its_frame.location;
  }
};

// All fields but `depth` hold what earlier calls left there: nothing needs to be cleared.
struct OpenFrames {
  static constexpr uint32_t kMax = ARCTRACE_OPEN_FRAMES_MAX;

  uint32_t depth;  // of open frames; beyond kMax they are only counted
  OpenFrame frames[kMax];

  // How many of them are kept: the outermost ones.
  uint32_t kept() const { return depth < kMax ? depth : kMax; }

  // The innermost frame, if it is kept and belongs to `key`; else null.
  const OpenFrame* innermost(uint64_t key) const {
    const uint32_t at = depth - 1;
    return at < kMax && frames[at].key == key ? &frames[at] : nullptr;
  }

  // Where the frame with index `at` is kept; null: it is only counted.
  OpenFrame* slot(uint32_t at) { return at < kMax ? &frames[at] : nullptr; }

  // Until the frame with index `at` is stored, nothing is known of it.
  void forget_location(uint32_t at) {
    if (OpenFrame* to = slot(at); to != nullptr) to->frame.location = 0;
  }

  // Stores a frame at index `at`, without a change of the depth.
  void store(uint32_t at, uint64_t key, const MachineFrame& frame) {
    if (OpenFrame* to = slot(at); to != nullptr) to->store(key, frame);
  }
};

}  // namespace arctrace
