// Library calls that the shim's stubs make on behalf of the program (shim_interface.h).
#include "src/attach.hpp"
#include "src/call_stack.hpp"
#include "src/loss.hpp"
#include "src/return_stack.hpp"
#include "src/shim_interface.h"

namespace arctrace {
namespace {

bool functions_are_recorded() { return (*arctrace_gate & ARCTRACE_GATE_FUNCTIONS) != 0; }

// Where the innermost call at `place` is kept; null: nowhere. A coroutine may return in
// another thread than it called in.
__attribute__((noinline)) ReturnStack* calls_with(uintptr_t place) {
  ReturnStack* own = thread_local_state.calls;
  if (__builtin_expect(own != nullptr && own->find(place) != nullptr, 1)) return own;
  ReturnStack* found = nullptr;
  for_each_return_stack([&](ReturnStack& stack) {
    if (found == nullptr && stack.find(place) != nullptr) found = &stack;
  });
  return found;
}

__attribute__((noinline)) ReturnStack* calls_of_new_thread() {
  attach_this_thread();
  const ThreadState* state = thread_local_state.state;
  if (state != nullptr && state->calls != nullptr) return thread_local_state.calls;
  count_lost_without_slot(session.view.control(), ARCTRACE_LOST_NO_SLOT);
  return nullptr;
}

// The calling thread's pending calls; null: it can't have any, a record is lost.
ReturnStack* own_calls() {
  const ThreadState* state = thread_local_state.state;
  if (__builtin_expect(state == nullptr || !state->attached, 0)) {
    return calls_of_new_thread();
  }
  return thread_local_state.calls;
}

void record_return(const PendingCall& call) {
  if (call.key == 0 || !functions_are_recorded()) return;
  const uintptr_t location = call.place + sizeof(uintptr_t);
  if (!record_innermost_exit(call.key, call.place)) {
    record_exit(call.key, location, call.place);
  }
}

}  // namespace
}  // namespace arctrace

using namespace arctrace;  // the C functions below are the namespace's face

__attribute__((flatten)) int arctrace_shim_call_begin(uint64_t frame_key,
                                                      const uintptr_t* place,
                                                      uintptr_t frame_pointer,
                                                      uint32_t flags) {
  if (!functions_are_recorded()) return 0;
  ReturnStack* calls = own_calls();
  if (__builtin_expect(calls == nullptr, 0)) return 0;
  const StubCall call{place, frame_pointer, flags};
  if (is_left_out(frame_key, call)) return 0;
  const bool inside = (flags & ARCTRACE_SHIM_RETURNS_TO_SHIM) != 0;
  PendingCall pending{reinterpret_cast<uintptr_t>(place), *place, frame_key};
  if (__builtin_expect(inside, 0)) {
    ReturnStack* around = calls_with(pending.place);
    if (around == nullptr) return 0;
    pending.return_address = around->find(pending.place)->return_address;
  }
  const ThreadStacks& stacks = thread_local_state.stacks;
  if (__builtin_expect(!calls->push(stacks, pending, inside), 0)) return 0;
  if (__builtin_expect(!record_enter(frame_key, call), 0)) {
    if (PendingCall* added = calls->find(pending.place); added != nullptr) added->key = 0;
  }
  return inside ? 0 : 1;
}

void arctrace_shim_call_end(uintptr_t* place) {
  const auto address = reinterpret_cast<uintptr_t>(place);
  ReturnStack* own = thread_local_state.calls;
  const PendingCall* top = own != nullptr ? own->only_top(address) : nullptr;
  if (__builtin_expect(top != nullptr, 1)) {
    record_return(*top);
    *place = top->return_address;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    own->drop_top();
    return;
  }
  ReturnStack* calls = calls_with(address);
  if (__builtin_expect(calls == nullptr, 0)) __builtin_trap();  // nowhere to go on
  const uintptr_t return_address = calls->find(address)->return_address;
  // Behind the first: those that ended with a jump to it.
  calls->for_each_at(address, record_return);
  *place = return_address;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (calls == own) {
    calls->drop(thread_local_state.stacks, address);
  } else {
    calls->drop_from_afar(address);
  }
}

void arctrace_shim_call_passed(uint64_t frame_key, const uintptr_t* place,
                               uintptr_t frame_pointer, uint32_t flags, int returns) {
  if (!functions_are_recorded() ||
      !record_enter(frame_key, StubCall{place, frame_pointer, flags}) || returns == 0) {
    return;
  }
  record_return({reinterpret_cast<uintptr_t>(place), *place, frame_key});
}

const uint64_t* arctrace_shim_pending_calls(void) { return &first_return_stack; }
