// Where library calls that went through the shim return to. The shim's stub takes the
// place of the caller's return address, so each thread keeps the real ones, by the place
// on the stack where they stood.
//
// Unlike thread states these survive fork: a child returns through its parent's calls.
// They are found by unwinders too, in any thread and at any instruction: a call is
// complete before the depth counts it, and stands until its return address is back in
// its place. Signal handlers push and drop on top and leave the depth as they found it;
// what they may have overwritten is written again.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/frame_place.hpp"
#include "src/shared_atomics.hpp"

namespace arctrace {

// The layout is known to the unwind rules in writer_shim/x86_64/call_stubs.S.
struct PendingCall {
  uintptr_t place;  // where its return address stood; 0: returned, or left
  uintptr_t return_address;
  uint64_t key;  // of its frame; 0: nothing was recorded
};

struct ReturnStack {
  static constexpr uint32_t kMaxCalls = 4096;

  uint64_t next;    // address of another thread's, 0: the last
  uint64_t depth;   // calls, with those in between that have place 0
  uint32_t* owner;  // lock of its thread's state; null: never used
  uint64_t is_compacting;
  uint64_t reserved[4];
  PendingCall calls[kMaxCalls];

  // Adds a call, and first drops those that can't be open any more. `inside`: the call
  // stands in the place of one that still waits: its callee jumped to another one.
  // False: no room.
  bool push(const ThreadStacks& stacks, const PendingCall& call, bool inside);

  // The innermost call at `place`; null: there is none.
  PendingCall* find(uintptr_t place);

  // Calls visit(call) for the innermost call at `place`, and for those which ended with a
  // jump to it, from the inside out. REQUIRES: there is one.
  template <class Visit>
  void for_each_at(uintptr_t place, const Visit& visit) {
    for (PendingCall* call = find(place); call != nullptr; call = next_at(call)) {
      visit(*call);
    }
  }

  // Drops the same calls, and what was called inside them. Their return address must be
  // back in its place.
  void drop(const ThreadStacks& stacks, uintptr_t place);

  // The same by another thread than the stack's.
  void drop_from_afar(uintptr_t place);

 private:
  // Further out at the same place; null: that was the last.
  PendingCall* next_at(PendingCall* call) {
    return call > calls && (call - 1)->place == call->place ? call - 1 : nullptr;
  }
  void trim();
  void compact();
};
static_assert(sizeof(PendingCall) == 24 && offsetof(PendingCall, return_address) == 8);
static_assert(offsetof(ReturnStack, next) == 0 && offsetof(ReturnStack, depth) == 8 &&
              offsetof(ReturnStack, calls) == 64);

// Address of the first of all linked stacks; they are never unlinked.
extern uint64_t first_return_stack;

// To be called once for a stack.
void link_return_stack(ReturnStack& stack);

template <class Visit>
void for_each_return_stack(const Visit& visit) {
  uint64_t address = IpcAtomics::load_acquire(first_return_stack);
  while (address != 0) {
    auto* stack = reinterpret_cast<ReturnStack*>(static_cast<uintptr_t>(address));
    visit(*stack);
    address = stack->next;
  }
}

}  // namespace arctrace
