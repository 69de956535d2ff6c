// Finds the open frames of a thread that cannot be open any more although no exit was
// reported: they were left by a jump or an exception, or lie on a stack that the thread
// has left.
#pragma once

#include <cstdint>

#include "src/hook_abi/shim_types.h"
#include "src/stack/call_edges.hpp"
#include "src/stack/machine_frame.hpp"
#include "src/stack/made_stacks.hpp"
#include "src/stack/open_frames.hpp"

namespace arctrace {

// The depth without the frames that lie below `now` on the stack, and without those that
// were entered inside them.
uint32_t depth_above(const ThreadStacks& stacks, const OpenFrames& open,
                     const MachineFrame& now);

// How many frames are left when a function is entered, and whether the innermost of those
// with a location is surely its caller, which a CallEdge may then say.
struct EntryDepth {
  uint32_t depth;
  bool is_edge;
};

// The depth that is left when `key` is entered at `now` by `call`, whose stack_pointer is
// 0 if it is not known.
EntryDepth depth_at_entry(const ThreadStacks& stacks, const OpenFrames& open,
                          uint64_t key, const MachineFrame& now,
                          const arctrace_shim_call& call);

// The innermost frame with a location; null: there is none, or it is not kept.
const OpenFrame* innermost_located(const OpenFrames& open);

// Whether the frames up to `innermost` surely are open when a function is entered at
// `now`, whose location is known: it is known to be called by the innermost of them.
inline bool is_known_call(const ThreadStacks& stacks, const CallEdges& edges,
                          const OpenFrame& innermost, const MachineFrame& now) {
  const MachineFrame& caller = innermost.frame;
  if (now.hook_site != 0) return edges.has(caller, now);
  // Without sites there is nothing to see but positions.
  return caller.location > now.location && !stacks.is_on_signal_stack(caller.location);
}

// Whether a call that ends at `address`, of a thread without open frames, needs no look
// at the stack: the program has no coroutines, or the thread is known to run there.
inline bool is_known_stack(const FollowedStack& followed, uintptr_t address) {
  return !has_made_stacks() || followed.has(address);
}

// The frame of `open` as the caller of an edge. One that was found open has no hook and
// so no hook site, and its edges do not make a call known alone: the frame may have been
// left without a hook's noticing.
MachineFrame caller_frame(const OpenFrame& open);

// Whether an edge from `caller` to this callee says what it has to: that the caller's
// function runs, and not another one that is called through the same pointer.
bool is_certain_caller(const OpenFrame& caller, const MachineFrame& callee);

// is_known_call() for an innermost frame that was found open: the return addresses of all
// that were found must also be in their slots still, because no hook sees them leave.
bool is_known_call_in_found(const ThreadStacks& stacks, const OpenFrames& open,
                            const CallEdges& edges, const OpenFrame& innermost,
                            const MachineFrame& now);

// Either of both, for the innermost of the open frames that have a location.
bool has_known_caller(const ThreadStacks& stacks, const OpenFrames& open,
                      const CallEdges& edges, const MachineFrame& now);

// Sets how the frames between a call and the innermost open frame are found. Without an
// unwinder (null) they are not looked for.
void set_unwinder(arctrace_shim_unwinder* unwinder);

}  // namespace arctrace
