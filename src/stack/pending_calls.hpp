// The return addresses of calls that go through the shim. The shim's stub writes its own
// address over the caller's return address on the stack, so each thread keeps the real
// ones here, by the stack slots from which they were taken.
//
// Unlike thread states, these survive fork, because a child returns through its parent's
// calls. Unwinders search them too, in any thread and at any instruction. Therefore a
// call is complete before the depth counts it, and it stays until its return address is
// back in its slot. Signal handlers push and drop calls on top and leave the depth as
// they found it; the thread then writes again what they may have overwritten.
//
// A call that seems to have been left by a jump, because a call further out on its stack
// was begun or has returned, may still return: a coroutine's stack may be a local array
// of the thread's own stack. So such calls are kept aside, by their exact slot, as
// LeftCalls.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/base/inlined.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/stack/thread_stacks.hpp"

namespace arctrace {

// The unwind rules in writer_shim/arch/*/call_stubs.S know this layout.
struct PendingCall {
  // A key that no frame has: nothing was recorded of the call.
  static constexpr uint64_t kNotRecorded = UINT64_MAX;

  uintptr_t return_slot;  // where its return address stood; 0: returned, or left
  uintptr_t return_address;
  uint64_t key;  // of its frame
};

// A thread's calls that were left, as far as their positions show: a hash table by their
// slots. A slot that was used twice belongs to the later call, because that one's return
// address has replaced the other's in memory. So a call that returns to its slot, and is
// no pending call, is the one that is found here. A call whose slot holds something else
// meanwhile can't return, and is dropped when its entry is needed. If there are more than
// kProbes others with neighbouring hashes, the table forgets one.
//
// Its head is laid out like that of PendingCalls, so that unwinders search it alike.
struct LeftCalls {
  static constexpr uint32_t kEntries = 4096;
  static constexpr uint32_t kProbes = 16;

  uint64_t next;   // address of another thread's, 0: the last
  uint64_t depth;  // kEntries, or 0: it was never used
  uint64_t replaced;
  uint64_t reserved[5];
  PendingCall calls[kEntries];  // return_slot 0: free

  // `own`: the stack whose slots can be read.
  void keep(const StackRange& own, const PendingCall& call);
  PendingCall* find(uintptr_t return_slot);
  void clear();

 private:
  PendingCall& probe(uintptr_t return_slot, uint32_t i) {
    return calls[(return_slot / sizeof(uintptr_t) + i) % kEntries];
  }
};

struct PendingCalls {
  static constexpr uint32_t kMaxCalls = 4096;

  uint64_t next;  // address of another thread's, or of the list's end
  // Calls, with those in between whose return_slot is 0. Threads that look for a free
  // state read it; relaxed, because they only see that there may be calls.
  uint64_t depth;
  uint32_t* owner;        // lock of its thread's state; null: never used
  StackRange own;         // the thread's stack; empty: not known
  PendingCall outermost;  // further out than any call; see begin_use()
  PendingCall calls[kMaxCalls];
  uint64_t is_compacting;
  uint64_t full_top;  // innermost return slot when compact() last found nothing to drop
  LeftCalls left;

  // To be called before the first use of memory that is all zero. All calls are inside of
  // `outermost`, so that nothing needs to ask whether there is a call.
  void begin_use() { outermost.return_slot = UINTPTR_MAX; }

  // The innermost call, or `outermost`, if `count` are counted.
  PendingCall* innermost(uint64_t count) {
    return reinterpret_cast<PendingCall*>(reinterpret_cast<uintptr_t>(&outermost) +
                                          count * sizeof(PendingCall));
  }

  // Adds a call, after those were dropped whose slot it takes, and those moved to `left`
  // that seem to be open no more. `inside`: the call has
  // the return slot of one that is still pending, because that one's callee jumped to it.
  // False: there is no room.
  bool push(const ThreadStacks& stacks, const PendingCall& call, bool inside) {
    const uint64_t at = depth;
    PendingCall* to = room_inside(stacks, at, call.return_slot);
    if (__builtin_expect(to == nullptr, 0)) return push_slow(stacks, call, inside);
    store(*to, at, call);
    return true;
  }

  // Where a call with this return slot is added if it is made by what the innermost of
  // the `at` calls called, as far as one can see from the slot, and there is room for it.
  // Else null.
  PendingCall* room_inside(const ThreadStacks& stacks, uint64_t at,
                           uintptr_t return_slot) {
    if (at >= kMaxCalls) return nullptr;
    PendingCall* to = kept_pointer(innermost(at) + 1);
    const uintptr_t top = (to - 1)->return_slot;
    const bool is_inside = top > return_slot && !stacks.is_on_signal_stack(top);
    return is_inside ? to : nullptr;
  }
  // Adds a call at `to`. REQUIRES: that is room_inside() for the depth `at`, which is
  // still the same.
  void store(PendingCall& to, uint64_t at, const PendingCall& call) {
    do {
      // The slot first: by it we see below whether the rest is ours too.
      to.return_slot = call.return_slot;
      std::atomic_signal_fence(std::memory_order_seq_cst);
      to.return_address = call.return_address;
      to.key = call.key;
      std::atomic_signal_fence(std::memory_order_seq_cst);
      IpcAtomics::store_relaxed(depth, at + 1);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      // A signal handler that came in between used the entry for a call of its own, which
      // had another return slot.
    } while (__builtin_expect(to.return_slot != call.return_slot || depth != at + 1, 0));
  }

  // The innermost call of all, if it has this return slot, and the one around it has
  // another one, as is usual for a call that returns. Else null.
  PendingCall* only_top(uintptr_t return_slot) {
    PendingCall* top = kept_pointer(innermost(depth));
    const bool is_only =
        top->return_slot == return_slot && (top - 1)->return_slot != return_slot;
    return is_only ? top : nullptr;
  }
  // REQUIRES: the innermost call is only_top(). Calls that are over may be innermost
  // then, until the next one is added.
  void drop_top() { IpcAtomics::add_to_own_relaxed(depth, ~uint64_t{0}); }

  // The innermost call with this return slot, or null.
  PendingCall* find(uintptr_t return_slot);

  // Calls visit(call) for the innermost call with this return slot, and for those that
  // ended with a jump to it, from the inside out. REQUIRES: there is one. visit() may
  // move it to another thread's.
  template <class Visit>
  void for_each_at(uintptr_t return_slot, const Visit& visit) {
    PendingCall* call = find(return_slot);
    while (call != nullptr) {
      PendingCall* outer = next_at(call);
      visit(PendingCall(*call));
      call = outer;
    }
  }

  // Drops the same calls, and moves to `left` those that were made inside them. REQUIRES:
  // their return address is back in its slot.
  void drop(const ThreadStacks& stacks, uintptr_t return_slot);

  // The same, by another thread than the one to which the calls belong.
  void drop_from_afar(uintptr_t return_slot);

  // Moves those of another thread's calls here that were made on a stack with which this
  // thread goes on, in a frame that ends at `goes_on`, and drops those further in: they
  // were left. The frame's own slot may be that of a call that ended with a jump to it,
  // or have been used again here. If each thread had the calls that it began, one that
  // was left and one that is open might have the same slot, and nothing would show which
  // one returns. The other thread may run meanwhile, and use entries of calls that it has
  // left for new ones.
  void take_over(PendingCalls& from, const StackRange& stack, uintptr_t goes_on);

  // Nothing is recorded of their returns.
  void leave_unrecorded();

  // Whether any may still return.
  bool has_calls() {
    return IpcAtomics::load_relaxed(depth) != 0 ||
           IpcAtomics::load_relaxed(left.depth) != 0;
  }

  // Drops the calls of a thread that is dead, but for those on other stacks than its own:
  // they belong to coroutines, with which another thread may go on.
  void drop_own();

 private:
  __attribute__((noinline)) bool push_slow(const ThreadStacks& stacks, PendingCall call,
                                           bool inside);

  // The next call further out with the same return slot; null: that was the last.
  PendingCall* next_at(PendingCall* call) {
    return call > calls && (call - 1)->return_slot == call->return_slot ? call - 1
                                                                        : nullptr;
  }
  // Makes `calls_left` the depth, without calls at the top that are over.
  void trim(uint64_t calls_left) {
    while (calls_left > 0 && calls[calls_left - 1].return_slot == 0) --calls_left;
    IpcAtomics::store_relaxed(depth, calls_left);
  }
  void compact();
};
static_assert(sizeof(PendingCall) == 24 && offsetof(PendingCall, return_address) == 8);
static_assert(offsetof(LeftCalls, next) == 0 && offsetof(LeftCalls, depth) == 8 &&
              offsetof(LeftCalls, calls) == 64);
static_assert(offsetof(PendingCalls, next) == 0 && offsetof(PendingCalls, depth) == 8 &&
              offsetof(PendingCalls, calls) == 64 &&
              offsetof(PendingCalls, outermost) == 40);

// Address of the first of all linked ones, which are never unlinked. After the last one
// come all threads' LeftCalls, so that unwinders search these last.
extern uint64_t first_pending_calls;

// What separates the two, laid out like the heads of both.
struct PendingCallsEnd {
  uint64_t next;  // address of the first LeftCalls
  uint64_t depth;
};
extern PendingCallsEnd pending_calls_end;

// The addresses to which pending calls return are in a block of this size, aligned to it:
// one of them stands in the slot of a call that is pending. Until it is set, and where it
// is 0, nothing is read there.
inline constexpr uintptr_t kStubBlockBytes = 512;
void set_stub_block(uintptr_t block);
extern uintptr_t stub_block;
inline bool is_stub_return(uintptr_t address) {
  return (address ^ stub_block) < kStubBlockBytes;
}

// To be called once for each.
void link_pending_calls(PendingCalls& calls);

template <class Visit>
void for_each_pending_calls(const Visit& visit) {
  const auto end = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(&pending_calls_end));
  uint64_t address = IpcAtomics::load_acquire(first_pending_calls);
  while (address != end) {
    auto* calls = reinterpret_cast<PendingCalls*>(static_cast<uintptr_t>(address));
    visit(*calls);
    address = calls->next;
  }
}

}  // namespace arctrace
