// Calls of functions that call hooks at their entry and right before each of their
// returns (gcc's -mfentry with -minstrument-return=call, XRay's sleds). Their return
// addresses stay where they are, so nothing is pending; a frame is known by its location
// when it is left.
#pragma once

#include <cstdint>

#include "src/calls/call_records.hpp"
#include "src/calls/fast_path.hpp"
#include "src/hook_abi/shim_types.h"

namespace arctrace {

inline constexpr uint32_t kReportedFrame =
    ARCTRACE_SHIM_BEGINS_FRAME | ARCTRACE_SHIM_LIBRARY_CALL | ARCTRACE_SHIM_REPORTS_EXIT;

// Records the entry of `key`, whose return address is in return_slot(). False: nothing
// was done. REQUIRES: fast_path_is_open(). Key: as for enter_fast().
template <class Room, class Key, class Here, class ReturnSlot>
__attribute__((always_inline)) inline bool enter_reported_fast(
    const Room& room, const Key& key, Here here, const ReturnSlot& return_slot) {
  const auto call = [&]() ARCTRACE_INLINED {
    return StubCall{return_slot(), 0, ARCTRACE_SHIM_REPORTS_EXIT};
  };
  return enter_fast(
      room, key, here,
      [&](const ThreadState& state, const OpenFrame* to) ARCTRACE_INLINED {
        // The call is made anew for each, so that no register is kept for where it is.
        const uintptr_t return_address = *return_slot();
        return state.open.depth.offset() == 0
                   ? is_known_first_stub_call(state, call(), return_address)
                   : is_known_inner_stub_call(to, call(), return_address);
      },
      [&](OpenFrame& to, uint64_t its_key) ARCTRACE_INLINED {
        const StubCall made = call();
        to.store(its_key, made.frame(*made.return_slot));
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
