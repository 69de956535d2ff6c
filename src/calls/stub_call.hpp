// A call that goes through one of the shim's stubs: its machine frame, and whether it is
// known who makes it.
#pragma once

#include <cstdint>

#include "src/base/inlined.hpp"
#include "src/hook_abi/shim_types.h"
#include "src/stack/left_frames.hpp"
#include "src/stack/machine_frame.hpp"
#include "src/stack/pending_calls.hpp"
#include "src/writer/thread_local.hpp"
#include "src/writer/thread_state.hpp"

namespace arctrace {

// A call that one of the shim's stubs makes on behalf of the program.
struct StubCall {
  const uintptr_t* return_slot;  // where its return address stands
  uintptr_t frame_pointer;
  uint32_t flags;  // enum arctrace_shim_call_flags

  // The machine frame that the called function is about to make.
  arctrace_shim_call described() const {
    return {here() + sizeof(uintptr_t), here(),       frame_pointer,
            site(*return_slot),         *return_slot, frame_flags()};
  }
  // The same, as the fast path needs it. Set member by member, and not const: only so gcc
  // keeps it in registers.
  MachineFrame frame(uintptr_t return_address) const {
    MachineFrame made;
    made.location = here() + sizeof(uintptr_t);
    if (made.location == 0) __builtin_unreachable();
    made.stack_pointer = low_half(here());
    made.call_site = low_half(return_address);
    made.hook_site = low_half(site(return_address));
    made.flags = frame_flags();
    return made;
  }
  // By which the call is known (CallEdges::has_stub_call()). One that returns to a stub
  // is another call than one from there.
  uintptr_t site(uintptr_t return_address) const {
    const bool returns_to_stub = (flags & ARCTRACE_SHIM_RETURNS_TO_SHIM) != 0;
    return returns_to_stub ? return_address + 1 : return_address;
  }
  uint32_t frame_flags() const {
    return flags | ARCTRACE_SHIM_BEGINS_FRAME | ARCTRACE_SHIM_LIBRARY_CALL;
  }
  uintptr_t here() const { return reinterpret_cast<uintptr_t>(return_slot); }
};

// The key of the call whose address is there, read when it is needed, so that no register
// is kept for it.
struct EnteredKey {
  const volatile uintptr_t* word;

  // NOLINTNEXTLINE(google-explicit-constructor)
  __attribute__((always_inline)) operator uint64_t() const {
    const auto& call = *reinterpret_cast<const arctrace_shim_stub_call*>(*word);
    return __atomic_load_n(&call.key, __ATOMIC_RELAXED);
  }
};

// Whether nothing needs to be known of a stub's call, because the thread has no open
// frame. One that returns to a stub ends together with another call.
__attribute__((always_inline)) inline bool is_known_first_stub_call(
    const ThreadState& state, const StubCall& call, uintptr_t return_address) {
  return is_known_stack(state.followed, call.here()) && !is_stub_return(return_address);
}

// Whether a stub's call, whose frame will be at `to`, is known to come from the frame
// before that.
__attribute__((always_inline)) inline bool is_known_inner_stub_call(
    const OpenFrame* to, const StubCall& call, uintptr_t return_address) {
  return thread_local_state.edges.has_stub_call((to - 1)->frame, call.here(),
                                                call.frame(return_address));
}

// Either of both, for the innermost open frame.
__attribute__((always_inline)) inline bool is_known_stub_call(const ThreadState& state,
                                                              const OpenFrame* to,
                                                              const StubCall& call,
                                                              uintptr_t return_address) {
  return state.open.depth.offset() == 0
             ? is_known_first_stub_call(state, call, return_address)
             : is_known_inner_stub_call(to, call, return_address);
}

// The same by what the slow path compares for a caller that was found open, whose calls
// the above does not know.
inline bool is_known_stub_call_in_found(const ThreadState& state, const OpenFrame* to,
                                        const StubCall& call, uintptr_t return_address) {
  return state.open.depth.offset() != 0 && (to - 1)->frame.has(ARCTRACE_SHIM_WAS_OPEN) &&
         is_known_call_in_found(thread_local_state.stacks, state.open,
                                thread_local_state.edges, *(to - 1),
                                call.frame(return_address));
}

}  // namespace arctrace
