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
// Key: as for enter_fast(). IsKnown: whether it is known who makes the call.
template <class Room, class Key, class Locks = NoLocks,
          class IsKnown = decltype(&is_known_stub_call)>
__attribute__((always_inline)) inline bool call_began_fast(
    const Room& room, const Key& key, const StubCall& call, const Locks& locks = {},
    const IsKnown& is_known = &is_known_stub_call) {
  if ((call.flags & ARCTRACE_SHIM_RETURNS_TO_SHIM) != 0) return false;
  const uintptr_t return_address = *call.return_slot;
  return enter_fast(
      room, key, call.here(),
      [&](const ThreadState& state, const OpenFrame* frame_to) ARCTRACE_INLINED {
        if (!is_known(state, frame_to, call, return_address)) return false;
        PendingCalls* calls = thread_local_state.calls;
        if (calls == nullptr) __builtin_unreachable();  // come with a state
        return calls->has_room_inside(thread_local_state.stacks, call.here());
      },
      [&](OpenFrame& frame_to, uint64_t its_key) ARCTRACE_INLINED {
        // Read once more, so that they need not be kept until here.
        PendingCalls* calls = thread_local_state.calls;
        if (calls == nullptr) __builtin_unreachable();
        const uintptr_t address = read_anew(*call.return_slot);
        calls->add({call.here(), address, its_key});
        frame_to.store(its_key, call.frame(address));
      },
      locks);
}

// A return slot whose address is in a register.
struct KnownReturnSlot {
  uintptr_t* slot;

  __attribute__((always_inline)) uintptr_t* compared() const { return slot; }
  __attribute__((always_inline)) uintptr_t* stored() const { return slot; }
};

// Ends a call as most end. ReturnSlot: as above. False: nothing was done. REQUIRES:
// fast_path_is_open().
template <class Room, class Here, class ReturnSlot>
__attribute__((always_inline)) inline bool call_ended_fast(
    const Room& room, Here here, const ReturnSlot& return_slot) {
  const PendingCall* top = nullptr;
  FrameCount left;  // index of the frame
  return room.record(
      here, ARCTRACE_TYPE_EXIT, 0,
      [&](const ThreadState& state) ARCTRACE_INLINED {
        PendingCalls* own = thread_local_state.calls;
        if (own == nullptr) __builtin_unreachable();  // come with a state
        const uintptr_t* slot = return_slot.compared();
        top = own->top_at(reinterpret_cast<uintptr_t>(slot));
        if (top == nullptr) return false;
        // The key of a call with arguments, of which nothing is recorded, or that ends
        // together with the one around it, is no frame's, so that it takes the slow path.
        // It is compared last, because that takes a register.
        left = state.open.depth.previous();
        const OpenFrame* innermost = state.open.kept_frame_at(left);
        return innermost != nullptr &&
               is_equal(innermost->frame.stack_pointer,
                        low_half(reinterpret_cast<uintptr_t>(slot))) &&
               __builtin_expect(innermost->key == top->key, 1);
      },
      [&](Nesting nesting, ThreadState& state, const Reservation& record)
          ARCTRACE_INLINED {
            commit_leave(nesting, state, record, left);
            // Read once more, so that it need not be kept until here.
            PendingCalls* own = thread_local_state.calls;
            if (own == nullptr || top == nullptr) __builtin_unreachable();
            end_innermost_call(*own, *top, return_slot.stored());
          });
}

// The same with the return slot as the address for the writer call.
template <class Room>
__attribute__((always_inline)) inline bool call_ended_fast(const Room& room,
                                                           uintptr_t* return_slot) {
  return call_ended_fast(room, reinterpret_cast<uintptr_t>(return_slot),
                         KnownReturnSlot{return_slot});
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
__attribute__((always_inline)) inline bool call_began_anywhere(
    const volatile FastGate& gate, uint64_t key, const StubCall& call) {
  const OwnBlock room{[&](ThreadState& state) ARCTRACE_INLINED {
    return call_began_in_chain(key, call.return_slot, call.frame_pointer, call.flags,
                               state);
  }};
  return fast_path_is_open<ARCTRACE_GATE_FUNCTIONS>(gate) &&
         call_began_fast(room, key, call);
}

__attribute__((always_inline)) inline int call_began(uint64_t key,
                                                     const uintptr_t* return_slot,
                                                     uintptr_t frame_pointer,
                                                     uint32_t flags) {
  if (__builtin_expect(call_began_anywhere(current_fast_gate(), key,
                                           {return_slot, frame_pointer, flags}),
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
