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

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/base/shared_atomics.hpp"
#include "src/stack/frame_place.hpp"

namespace arctrace {

// The layout is known to the unwind rules in writer_shim/arch/x86_64/call_stubs.S.
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
  StackRange own;   // of its thread; empty: not known
  uint64_t is_compacting;
  uint64_t full_top;  // innermost place when compact() last found nothing to drop
  uint64_t reserved;
  PendingCall calls[kMaxCalls];

  // Adds a call, and first drops those that can't be open any more. `inside`: the call
  // stands in the place of one that still waits: its callee jumped to another one.
  // False: no room.
  bool push(const ThreadStacks& stacks, const PendingCall& call, bool inside) {
    if (__builtin_expect(!has_room_inside(stacks, call.place), 0)) {
      return push_slowly(stacks, call, inside);
    }
    add(call);
    return true;
  }

  // Whether a call at `place` is made by what the innermost one called, by all that one
  // can see of it, and there is room for it.
  bool has_room_inside(const ThreadStacks& stacks, uintptr_t place) const {
    const uint64_t at = depth;
    if (at == 0) return true;
    if (at >= kMaxCalls) return false;
    const uintptr_t top = calls[at - 1].place;
    return top > place && stacks.which(top) != ThreadStacks::Which::kSignal;
  }
  // REQUIRES: has_room_inside().
  void add(const PendingCall& call) { store(depth, call); }

  // The innermost call of all, if it is at `place`, and the one around it is elsewhere
  // and not over: as most are that return. Else null.
  PendingCall* only_top(uintptr_t place) {
    const uint64_t at = depth;
    if (at == 0 || calls[at - 1].place != place) return nullptr;
    if (at == 1) return &calls[0];
    const uintptr_t around = calls[at - 2].place;
    return around == place || around == 0 ? nullptr : &calls[at - 1];
  }
  // REQUIRES: it is only_top().
  void drop_top() { depth = depth - 1; }

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

  // Its thread is dead. Calls on other stacks than its own stay: of coroutines that
  // another thread may go on with.
  void drop_own();

 private:
  __attribute__((noinline)) bool push_slowly(const ThreadStacks& stacks, PendingCall call,
                                             bool inside);

  void store(uint64_t at, const PendingCall& call) {
    do {
      // The place first: by it we see below whether the rest is ours too.
      calls[at].place = call.place;
      std::atomic_signal_fence(std::memory_order_seq_cst);
      calls[at].return_address = call.return_address;
      calls[at].key = call.key;
      std::atomic_signal_fence(std::memory_order_seq_cst);
      depth = at + 1;
      std::atomic_signal_fence(std::memory_order_seq_cst);
      // A signal handler that came in between had the entry for a call of its own, which
      // stood elsewhere.
    } while (__builtin_expect(calls[at].place != call.place || depth != at + 1, 0));
  }

  // Further out at the same place; null: that was the last.
  PendingCall* next_at(PendingCall* call) {
    return call > calls && (call - 1)->place == call->place ? call - 1 : nullptr;
  }
  // Makes `calls_left` the depth, without those that are over.
  void trim(uint64_t calls_left) {
    while (calls_left > 0 && calls[calls_left - 1].place == 0) --calls_left;
    depth = calls_left;
  }
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
