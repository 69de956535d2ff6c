// Finds the open frames of a thread that cannot be open any more although no exit was
// recorded: a jump or an exception abandoned them, or they are on a stack from which the
// thread has gone.
#pragma once

#include <cstdint>

#include "src/hook_abi/shim_types.h"
#include "src/stack/call_edges.hpp"
#include "src/stack/coroutine_stacks.hpp"
#include "src/stack/open_calls.hpp"

namespace arctrace::writer {

// The depth without the frames that lie below `now` on the stack, and without those that
// were entered inside them.
uint32_t depth_above(const ThreadStacks& stacks, const OpenFrames& open,
                     const MachineFrame& now);

// How many frames remain when a function is entered, and whether the innermost of those
// with a CFA is surely its caller, so that a CallEdge may be added.
struct EntryDepth {
  uint32_t depth;
  bool is_edge;
};

// The depth that remains when `key` is entered at `now` by `call`, whose stack_pointer is
// 0 if it is not known.
EntryDepth depth_at_entry(const ThreadStacks& stacks, const OpenFrames& open,
                          uint64_t key, const MachineFrame& now,
                          const arctrace_shim_call& call);

// The innermost frame with a CFA; null: there is none, or it is too deep to be kept.
const OpenFrame* innermost_with_cfa(const OpenFrames& open);

// The frame of `open` as the caller of an edge. A frame that was found open has no hook
// and so no hook site. An edge alone does not make its calls known, because the frame may
// have ended without a hook.
MachineFrame caller_frame(const OpenFrame& open);

// Whether an edge from `caller` to this callee proves that the caller's function runs,
// and not another one that is called through the same pointer.
bool is_certain_caller(const OpenFrame& caller, const MachineFrame& callee);

// As is_known_call(), for an innermost frame that was found open: the return addresses of
// all frames that were found must also be in their slots still, because no hook sees
// these frames end.
bool is_known_call_in_found(const ThreadStacks& stacks, const OpenFrames& open,
                            const CallEdges& edges, const OpenFrame& innermost,
                            const MachineFrame& now);

// Whether is_known_call() or is_known_call_in_found() holds, for the innermost of the
// open frames that have a CFA.
bool has_known_caller(const ThreadStacks& stacks, const OpenFrames& open,
                      const CallEdges& edges, const MachineFrame& now);

// Sets the unwinder that finds the frames between a call and the innermost open frame.
// Without an unwinder (null) they are not searched for.
void set_unwinder(arctrace_shim_unwinder* unwinder);

}  // namespace arctrace::writer
