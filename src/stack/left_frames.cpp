#include "src/stack/left_frames.hpp"

namespace arctrace {
namespace {

constexpr uint32_t kNoFrame = UINT32_MAX;

arctrace_shim_unwinder* unwinder;  // set once, before the first hook needs it

// The depth that is left when `key` is entered at `now`, without the frames whose stack
// space it takes. It takes a frame's space if it returns to another address, if its hook
// is called from the same address once more, or if it is a function of its own and not
// one that was inlined into the frame's function.
uint32_t depth_without_replaced(const ThreadStacks& stacks, const OpenFrames& open,
                                uint64_t key, const MachineFrame& now) {
  uint32_t depth = depth_above(stacks, open, now);
  if (depth > OpenFrames::kMax || now.hook_site == 0) return depth;
  bool is_own_frame = now.has(ARCTRACE_SHIM_BEGINS_FRAME);
  uint32_t bottom = depth;
  uint32_t replaced = kNoFrame;
  while (bottom > 0 && open.frames[bottom - 1].frame.location == now.location) {
    const OpenFrame& last = open.frames[bottom - 1];
    // The library call that this is part of.
    if (last.frame.has(ARCTRACE_SHIM_LIBRARY_CALL) &&
        now.has(ARCTRACE_SHIM_RETURNS_TO_SHIM)) {
      break;
    }
    --bottom;
    if (last.frame.hook_site == 0) continue;
    if (last.frame.call_site != now.call_site || last.frame.hook_site == now.hook_site) {
      replaced = bottom;
    }
    if (last.key == key && last.frame.has(ARCTRACE_SHIM_BEGINS_FRAME)) {
      is_own_frame = false;
    }
  }
  if (is_own_frame) replaced = bottom;
  return replaced < depth ? replaced : depth;
}

// The depth without those of the outermost `depth` frames that lie between the call and
// its caller, or that one's caller, and so on: where machine frames follow one another,
// none can lie between them.
uint32_t depth_of_callers(const ThreadStacks& stacks, const OpenFrames& open,
                          uint32_t depth, arctrace_shim_call frame) {
  constexpr uint32_t kStepsMax = 32;
  using Which = ThreadStacks::Which;
  if (depth > OpenFrames::kMax || unwinder == nullptr ||
      (frame.flags & ARCTRACE_SHIM_LOCATION_GUESSED) != 0 ||
      stacks.which(frame.location) != Which::kOwn) {
    return depth;
  }
  uint32_t i = depth;
  while (i > 0 && open.frames[i - 1].frame.location == 0) --i;
  if (i == 0 || open.frames[i - 1].frame.location == frame.location) return depth;
  for (uint32_t step = 0; step < kStepsMax; ++step) {
    const uintptr_t callee = frame.location;
    if (unwinder(&frame, stacks.own.high) == 0 || frame.location <= callee) return depth;
    for (; i > 0; --i) {
      const MachineFrame& outer = open.frames[i - 1].frame;
      if (outer.location == 0) continue;
      if (outer.location == frame.location ||
          stacks.which(outer.location) != Which::kOwn ||
          outer.has(ARCTRACE_SHIM_LOCATION_GUESSED)) {
        return depth;
      }
      if (outer.location > frame.location) break;
      depth = i - 1;
    }
    if (i == 0) return depth;
  }
  return depth;
}

}  // namespace

uint32_t depth_above(const ThreadStacks& stacks, const OpenFrames& open,
                     const MachineFrame& now) {
  const uint32_t kept = open.kept();
  uint32_t depth = open.depth;
  for (uint32_t i = kept; i > 0; --i) {
    const MachineFrame& outer = open.frames[i - 1].frame;
    if (outer.location == 0) continue;
    if (!lies_below(stacks, outer, now)) break;
    depth = i - 1;
  }
  return depth;
}

uint32_t depth_at_entry(const ThreadStacks& stacks, const OpenFrames& open, uint64_t key,
                        const MachineFrame& now, const arctrace_shim_call& call) {
  const uint32_t depth = depth_without_replaced(stacks, open, key, now);
  return call.stack_pointer == 0 ? depth : depth_of_callers(stacks, open, depth, call);
}

void set_unwinder(arctrace_shim_unwinder* chosen) { unwinder = chosen; }

}  // namespace arctrace
