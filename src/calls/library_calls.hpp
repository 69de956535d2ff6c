// Records the calls that the shim's stubs make on behalf of the program. Each is a frame,
// and is pending until it returns to the shim.
//
// call_began() and call_ended() try the fast path inline, hand over to their _in_chain
// form where the thread has no room in a block of its own, and call their _slow form
// otherwise.
#pragma once

#include <arctrace/format.h>

#include <cstdint>

#include "src/calls/call_records.hpp"
#include "src/hook_abi/shim_types.h"
#include "src/process/gate.hpp"
#include "src/stack/made_stacks.hpp"
#include "src/stack/pending_calls.hpp"

namespace arctrace {

// `args` is an index into what set_call_args() was given, and tells which arguments and
// return value of a call are recorded. `registers` then holds the integer registers that
// pass arguments.

// To be called once, before there is a call that has arguments.
void set_call_args(const arctrace_shim_call_args* all);

// Records the entry of a call. Returns nonzero if the stub is to call the function and
// then call_ended(), which must not be called if this returned 0.
__attribute__((noinline)) int call_began_slow(uint64_t key, const uintptr_t* return_slot,
                                              uintptr_t frame_pointer, uint32_t flags);
int call_began_with_args(uint64_t key, const StubCall& call, uint32_t args,
                         const uintptr_t* registers);

// Records the exit of the call whose return address was taken from `return_slot`, and
// puts the return address back there. `retval` is the integer register of the return
// value.
__attribute__((noinline)) void call_ended_slow(uintptr_t* return_slot, uintptr_t retval);

// Records the entry of a call that the stub jumps to, and its exit at once if it returns
// at all (`returns`).
void call_passed(uint64_t key, const StubCall& call, bool returns);
void call_passed_with_args(uint64_t key, const StubCall& call, bool returns,
                           uint32_t args, const uintptr_t* registers);

// Ends the innermost of the thread's pending calls, which has returned: puts its return
// address back into its slot.
inline void end_innermost_call(PendingCalls& calls, const PendingCall& call,
                               uintptr_t* return_slot) {
  *return_slot = call.return_address;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  calls.drop_top();
}

// Begins a call as most begin: with its own frame, and inside the innermost pending call.
// False: nothing was done. REQUIRES: fast_path_is_open().
template <class Room, class Locks = NoLocks>
__attribute__((always_inline)) inline bool call_began_fast(const Room& room, uint64_t key,
                                                           const StubCall& call,
                                                           const Locks& locks = {}) {
  if ((call.flags & ARCTRACE_SHIM_RETURNS_TO_SHIM) != 0) return false;
  PendingCalls* calls = nullptr;
  const PendingCall pending{call.here(), *call.return_slot, key};
  PendingCall* to = nullptr;
  uint64_t at = 0;
  return enter_fast(
      room, key, call.here(),
      [&](const ThreadState& state, const OpenFrame* caller) ARCTRACE_INLINED {
        // A call that returns to a stub ends together with another one.
        if (caller == nullptr
                ? !is_known_stack(state.followed, call.here()) ||
                      is_stub_return(pending.return_address)
                : !state.edges.has_stub_call(caller->frame, call.here(),
                                             call.frame(pending.return_address))) {
          return false;
        }
        calls = thread_local_state.calls;
        if (calls == nullptr) __builtin_unreachable();  // come with a state
        at = calls->depth;
        to = calls->room_inside(thread_local_state.stacks, at, pending.return_slot);
        return to != nullptr;
      },
      [&]() ARCTRACE_INLINED {
        if (to == nullptr || calls == nullptr) __builtin_unreachable();
        calls->store(*to, at, pending);
        return call.frame(pending.return_address);
      },
      locks);
}

// Ends a call as most end. False: nothing was done. REQUIRES: fast_path_is_open().
template <class Room>
__attribute__((always_inline)) inline bool call_ended_fast(const Room& room,
                                                           uintptr_t* return_slot) {
  const auto address = reinterpret_cast<uintptr_t>(return_slot);
  PendingCalls* own = nullptr;
  const PendingCall* top = nullptr;
  FrameCount left;  // index of the frame
  return room.record(
      address, ARCTRACE_TYPE_EXIT, 0,
      [&](const ThreadState& state) ARCTRACE_INLINED {
        own = thread_local_state.calls;
        if (own == nullptr) __builtin_unreachable();  // come with a state
        top = own->only_top(address);
        if (top == nullptr) return false;
        left = state.open.depth.previous();
        // The key of a call with arguments, or of which nothing is recorded, is no
        // frame's, so that it takes the slow path.
        const OpenFrame* innermost = state.open.innermost(top->key);
        return innermost != nullptr &&
               innermost->frame.stack_pointer == low_half(address);
      },
      [&](Nesting nesting, ThreadState& state, const Reservation& record)
          ARCTRACE_INLINED {
            if (own == nullptr || top == nullptr) __builtin_unreachable();
            commit_leave(nesting, state, record, left);
            end_innermost_call(*own, *top, return_slot);
          });
}

// Begins a call in the shared chain, for an OwnBlock. False: nothing was done.
__attribute__((noinline)) bool call_began_in_chain(uint64_t key,
                                                   const uintptr_t* return_slot,
                                                   uintptr_t frame_pointer,
                                                   uint32_t flags, ThreadState& state);

// Ends a call, in the shared chain or otherwise, for an OwnBlock.
__attribute__((noinline)) void call_ended_in_chain(uintptr_t* return_slot,
                                                   uintptr_t retval, ThreadState& state);

// Begins a call in the thread's own block or in the shared chain. False: nothing was
// done.
__attribute__((always_inline)) inline bool call_began_anywhere(uint64_t key,
                                                               const StubCall& call) {
  const OwnBlock room{[&](ThreadState& state) ARCTRACE_INLINED {
    return call_began_in_chain(key, call.return_slot, call.frame_pointer, call.flags,
                               state);
  }};
  return fast_path_is_open<ARCTRACE_GATE_FUNCTIONS>() && call_began_fast(room, key, call);
}

__attribute__((always_inline)) inline int call_began(uint64_t key,
                                                     const uintptr_t* return_slot,
                                                     uintptr_t frame_pointer,
                                                     uint32_t flags) {
  if (__builtin_expect(call_began_anywhere(key, {return_slot, frame_pointer, flags}),
                       1)) {
    return 1;
  }
  return call_began_slow(key, return_slot, frame_pointer, flags);
}

__attribute__((always_inline)) inline void call_ended(uintptr_t* return_slot,
                                                      uintptr_t retval) {
  const OwnBlock room{[&](ThreadState& state) ARCTRACE_INLINED {
    call_ended_in_chain(return_slot, retval, state);
    return true;
  }};
  if (__builtin_expect(fast_path_is_open<ARCTRACE_GATE_FUNCTIONS>() &&
                           call_ended_fast(room, return_slot),
                       1)) {
    return;
  }
  call_ended_slow(return_slot, retval);
}

}  // namespace arctrace
