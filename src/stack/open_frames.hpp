// The frames that a thread has open, as its hooks reported them, outermost first.
#pragma once

#include <arctrace/format.h>

#include <cstdint>

#include "src/stack/machine_frame.hpp"

namespace arctrace {

struct OpenFrame {
  uint64_t key;  // function address or name key
  MachineFrame frame;
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

  // The fingerprint of the frame around the one with index `at`.
  uint32_t parent_fingerprint(uint32_t at) const {
    return at == 0 ? 0 : frames[at - 1].frame.fingerprint();
  }

  // Whether the innermost frame is surely open when a function is entered at `now`,
  // because it lies further up, and the last call from it, or from one like it, came from
  // there too.
  bool surely_has_innermost(const ThreadStacks& stacks, const MachineFrame& now) const {
    if (depth == 0) return true;
    if (depth >= kMax) return false;
    const MachineFrame& innermost = frames[depth - 1].frame;
    const MachineFrame& last = frames[depth].frame;
    return innermost.location > now.location && last.location == now.location &&
           last.call_site == now.call_site && last.has_parent(innermost.fingerprint()) &&
           stacks.which(innermost.location) != ThreadStacks::Which::kSignal;
  }

  // Stores a frame at index `at`, without a change of the depth.
  void store(uint32_t at, uint64_t key, MachineFrame frame, uint32_t parent) {
    frame.set_parent(parent);
    frames[at] = {key, frame};
  }
  void store(uint32_t at, uint64_t key, const MachineFrame& frame) {
    if (at < kMax) store(at, key, frame, parent_fingerprint(at));
  }
};

}  // namespace arctrace
