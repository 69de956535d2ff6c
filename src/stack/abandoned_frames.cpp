// Compares machine frames to find those that were abandoned, by positions, edges, or an
// unwinder.
#include "src/stack/abandoned_frames.hpp"

#include "src/stack/call_edges.hpp"
#include "src/stack/open_calls.hpp"

namespace arctrace::writer {

uint64_t call_edges_epoch;

void forget_call_edges() {
  static uint64_t changes;
  // A multiplicative hash: successive numbers differ in all bits.
  __atomic_store_n(&call_edges_epoch, ++changes * 0x9E3779B97F4A7C15U, __ATOMIC_RELAXED);
}

namespace {

constexpr uint32_t kNoFrame = UINT32_MAX;

arctrace_shim_unwinder* unwinder;  // set once, before the first hook needs it

// The depth that remains when `key` is entered at `now`, without the frames whose stack
// space the new frame takes. It takes a frame's space if it returns to another address,
// if its hook is called from the same address once more, or if it is a function of its
// own and not one that was inlined into the frame's function.
uint32_t depth_without_replaced(const ThreadStacks& stacks, const OpenFrames& open,
                                uint64_t key, const MachineFrame& now) {
  uint32_t depth = depth_above(stacks, open, now);
  if (depth > OpenFrames::kMax || now.hook_site == 0) return depth;
  bool is_own_frame = now.has(ARCTRACE_SHIM_BEGINS_FRAME);
  uint32_t bottom = depth;
  uint32_t replaced = kNoFrame;
  while (bottom > 0 && open.frames[bottom - 1].frame.cfa == now.cfa) {
    const OpenFrame& last = open.frames[bottom - 1];
    // This frame is the library call that `now` is a part of.
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

// How many of the outermost `depth` frames remain if the innermost ones without a CFA are
// not counted.
uint32_t depth_with_cfa(const OpenFrames& open, uint32_t depth) {
  while (depth > 0 && open.frames[depth - 1].frame.cfa == 0) --depth;
  return depth;
}

// Whether code that goes on at `site` may run in a frame that was found open. A caller
// that calls the frame's function through a pointer may have called another function
// since.
bool may_run(const OpenFrame& open, uintptr_t site) {
  if (open.frame.has(ARCTRACE_SHIM_CALLED_BY_NAME)) return true;
  const uint32_t begin = low_half(open.key);
  return low_half(site) - 1 - begin < open.frame.found_code_end - begin;
}

// Whether the open frame `open` is the machine frame `found` by the unwinder, and not one
// whose stack space `found` has taken. The return address of a library call was taken out
// of its slot.
bool is_same_frame(const OpenFrame& open, const arctrace_shim_call& found) {
  const MachineFrame& frame = open.frame;
  if (frame.cfa != found.cfa) return false;
  if (frame.has(ARCTRACE_SHIM_WAS_OPEN) && !may_run(open, found.hook_site)) return false;
  return found.call_site == 0 || frame.call_site == low_half(found.call_site) ||
         (frame.has(ARCTRACE_SHIM_LIBRARY_CALL) && !frame.has(ARCTRACE_SHIM_EXIT_HOOKED));
}

// The depth without frames that were found open and whose return addresses are not in
// their slots any more, if the innermost of the outermost `depth` frames was found open.
// If it was not, all frames are open in which it was entered. Such frames are only
// checked on a machine where return addresses are just below the CFA.
uint32_t depth_of_found(const ThreadStacks& stacks, const OpenFrames& open,
                        uint32_t depth) {
  const uint32_t located = depth_with_cfa(open, depth);
  if (located == 0 || !open.frames[located - 1].frame.has(ARCTRACE_SHIM_WAS_OPEN)) {
    return depth;
  }
  for (uint32_t i = 0; i < located; ++i) {
    const MachineFrame& frame = open.frames[i].frame;
    if (!frame.has(ARCTRACE_SHIM_WAS_OPEN) || frame.cfa == 0 ||
        stacks.which(frame.cfa) != ThreadStacks::Which::kOwn) {
      continue;
    }
    const uintptr_t returns_to = reinterpret_cast<const uintptr_t*>(frame.cfa)[-1];
    if (low_half(returns_to) != frame.call_site && !is_stub_return(returns_to)) return i;
  }
  return depth;
}

// Whether the machine frame `caller` is the one that made the call, which may be on any
// stack, and the first one there.
bool is_direct_caller(const OpenFrame& caller, arctrace_shim_call callee) {
  return unwinder(&callee, caller.frame.cfa, caller.frame.cfa) != 0 &&
         is_same_frame(caller, callee);
}

// The depth without those of the outermost `depth` frames that lie between the call and
// its caller, or between that caller and its own, and so on: machine frames follow one
// another, so none can lie between them. REQUIRES: the call is on the thread's own stack.
EntryDepth depth_of_callers(const ThreadStacks& stacks, const OpenFrames& open,
                            uint32_t depth, arctrace_shim_call frame) {
  constexpr uint32_t kStepsMax = 32;
  uint32_t i = depth_with_cfa(open, depth);
  for (uint32_t step = 0; step < kStepsMax && i > 0; ++step) {
    const uintptr_t callee = frame.cfa;
    if (unwinder(&frame, stacks.own.high, 0) == 0 || frame.cfa <= callee) break;
    for (; i > 0; --i) {
      const OpenFrame& open_frame = open.frames[i - 1];
      const MachineFrame& outer = open_frame.frame;
      if (outer.cfa == 0) continue;
      if (stacks.which(outer.cfa) != ThreadStacks::Which::kOwn ||
          outer.has(ARCTRACE_SHIM_CFA_GUESSED)) {
        return {depth, false};
      }
      if (is_same_frame(open_frame, frame)) return {depth, true};
      if (outer.cfa > frame.cfa) break;
      depth = i - 1;
    }
  }
  return {depth, false};
}

// As depth_of_callers(), for a call on any stack.
EntryDepth depth_of_caller(const ThreadStacks& stacks, const OpenFrames& open,
                           uint32_t depth, const arctrace_shim_call& call) {
  const uint32_t located = depth_with_cfa(open, depth);
  if (located == 0) return {depth, false};
  const MachineFrame& innermost = open.frames[located - 1].frame;
  const uint32_t guessed = ARCTRACE_SHIM_CFA_GUESSED;
  if (unwinder == nullptr || ((call.flags | innermost.flags) & guessed) != 0) {
    // Only positions count here, which an edge repeats, except for the check whether one
    // of them is on the signal stack.
    const bool has_one_stack = stacks.signal.low == stacks.signal.high;
    return {depth, has_one_stack && innermost.cfa > call.cfa};
  }
  if (innermost.cfa == call.cfa) return {depth, true};
  if (stacks.which(call.cfa) != ThreadStacks::Which::kOwn) {
    return {depth, is_direct_caller(open.frames[located - 1], call)};
  }
  return depth_of_callers(stacks, open, depth, call);
}

}  // namespace

uint32_t depth_above(const ThreadStacks& stacks, const OpenFrames& open,
                     const MachineFrame& now) {
  const uint32_t stored = open.stored();
  uint32_t depth = open.depth;
  for (uint32_t i = stored; i > 0; --i) {
    const MachineFrame& outer = open.frames[i - 1].frame;
    if (outer.cfa == 0) continue;
    if (!lies_below(stacks, outer, now)) break;
    depth = i - 1;
  }
  return depth;
}

EntryDepth depth_at_entry(const ThreadStacks& stacks, const OpenFrames& open,
                          uint64_t key, const MachineFrame& now,
                          const arctrace_shim_call& call) {
  uint32_t depth = depth_without_replaced(stacks, open, key, now);
  if (depth <= OpenFrames::kMax) depth = depth_of_found(stacks, open, depth);
  if (call.stack_pointer == 0 || depth > OpenFrames::kMax) return {depth, false};
  return depth_of_caller(stacks, open, depth, call);
}

const OpenFrame* innermost_with_cfa(const OpenFrames& open) {
  if (open.depth > OpenFrames::kMax) return nullptr;
  const uint32_t located = depth_with_cfa(open, open.depth);
  return located == 0 ? nullptr : &open.frames[located - 1];
}

bool has_known_caller(const ThreadStacks& stacks, const OpenFrames& open,
                      const CallEdges& edges, const MachineFrame& now) {
  if (open.depth > OpenFrames::kMax) return false;
  const OpenFrame* innermost = innermost_with_cfa(open);
  if (innermost == nullptr) return true;
  if (!innermost->frame.has(ARCTRACE_SHIM_WAS_OPEN)) {
    return is_known_call(stacks, edges, *innermost, now);
  }
  return is_known_call_in_found(stacks, open, edges, *innermost, now);
}

bool is_known_call_in_found(const ThreadStacks& stacks, const OpenFrames& open,
                            const CallEdges& edges, const OpenFrame& innermost,
                            const MachineFrame& now) {
  return edges.has(caller_frame(innermost), now) &&
         depth_of_found(stacks, open, open.depth) == open.depth;
}

bool is_certain_caller(const OpenFrame& caller, const MachineFrame& callee) {
  return !caller.frame.has(ARCTRACE_SHIM_WAS_OPEN) || may_run(caller, callee.call_site);
}

MachineFrame caller_frame(const OpenFrame& open) {
  MachineFrame frame = open.frame;
  // No hook returns to this address, because the function's first instruction is not over
  // there.
  if (frame.has(ARCTRACE_SHIM_WAS_OPEN)) frame.hook_site = low_half(open.key) + 1;
  return frame;
}

void set_unwinder(arctrace_shim_unwinder* finder) { unwinder = finder; }

}  // namespace arctrace::writer
