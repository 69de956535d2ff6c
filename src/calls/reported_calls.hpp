// Calls of functions that call hooks at their entry and right before each of their
// returns (gcc's -mfentry with -minstrument-return=call, XRay's sleds). Their return
// addresses stay where they are, so nothing is pending; a frame is known by its location
// when it is left.
#pragma once

#include <cstdint>

#include "src/calls/call_records.hpp"
#include "src/calls/fast_path.hpp"
#include "src/hook_abi/shim_types.h"
#include "src/stack/made_stacks.hpp"
#include "src/stack/pending_calls.hpp"

namespace arctrace {

inline constexpr uint32_t kReportedFrame =
    ARCTRACE_SHIM_BEGINS_FRAME | ARCTRACE_SHIM_LIBRARY_CALL | ARCTRACE_SHIM_REPORTS_EXIT;

// Records the entry of `key`, whose return address is in `return_slot`. False: nothing
// was done. REQUIRES: fast_path_is_open().
template <class Room>
__attribute__((always_inline)) inline bool enter_reported_fast(
    const Room& room, uint64_t key, const uintptr_t* return_slot) {
  const StubCall call{return_slot, 0, ARCTRACE_SHIM_REPORTS_EXIT};
  const uintptr_t return_address = *return_slot;
  return enter_fast(
      room, key, call.here(),
      [&](const ThreadState& state, const OpenFrame* caller) ARCTRACE_INLINED {
        // The frame of a call that returns to a stub is left with another one.
        return caller == nullptr ? is_known_stack(state.followed, call.here()) &&
                                       !is_stub_return(return_address)
                                 : state.edges.has_stub_call(caller->frame, call.here(),
                                                             call.frame(return_address));
      },
      // Read once more, so that it need not be kept until here.
      [&]() ARCTRACE_INLINED {
        return call.frame(*static_cast<const volatile uintptr_t*>(return_slot));
      });
}

// Records that the function whose return address is in `return_slot` is about to return
// there, if its frame is the innermost one. False: nothing was done. REQUIRES:
// fast_path_is_open().
template <class Room>
__attribute__((always_inline)) inline bool exit_reported_fast(
    const Room& room, const uintptr_t* return_slot) {
  const auto here = reinterpret_cast<uintptr_t>(return_slot);
  FrameCount left;  // index of the frame
  return room.record(
      AtStackPointer{}, ARCTRACE_TYPE_EXIT, 0,
      [&](const ThreadState& state) ARCTRACE_INLINED {
        left = state.open.depth.previous();
        if (left.offset() >= FrameCount(OpenFrames::kMax).offset()) return false;
        const MachineFrame& innermost = state.open.frame_at(left)->frame;
        return innermost.location == here + sizeof(uintptr_t) &&
               innermost.flags == kReportedFrame;
      },
      [&](Nesting nesting, ThreadState& state, const Reservation& record)
          ARCTRACE_INLINED { commit_leave(nesting, state, record, left); });
}

}  // namespace arctrace
