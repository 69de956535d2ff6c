// The return addresses of calls that go through the shim. The shim's stub writes its own
// address over the caller's return address on the stack, so each thread keeps the real
// ones here, by the stack slots from which they were taken.
//
// Unlike thread states, these survive fork, because a child returns through its parent's
// calls. Unwinders search them too, in any thread and at any instruction. Therefore a
// call is complete before it is the innermost one, and it stays until its return address
// is back in its slot. Signal handlers push and drop calls on top and leave the same one
// innermost as they found; the thread then writes again what they may have overwritten.
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
#include "src/stack/fork_frames.hpp"
#include "src/stack/thread_stacks.hpp"
#include "src/stack/timed_calls.hpp"

namespace arctrace {

// The unwind rules in writer_shim/arch/*/call_stubs.S know this layout.
struct PendingCall {
  // A key that no frame has: nothing was recorded of the call.
  static constexpr uint64_t kNotRecorded = UINT64_MAX;
  // In the key, so that it is no frame's: the call has the return slot of the one around
  // it, because that one's callee jumped to it, and both end together.
  static constexpr uint64_t kInside = uint64_t{1} << 60;

  uintptr_t return_slot;  // where its return address stood; 0: returned, or left
  uintptr_t return_address;
  uint64_t key;  // of its frame
};

inline uint64_t address_of(const PendingCall& call) {
  return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(&call));
}

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

  uint64_t next;  // address of another thread's, 0: the last
  uint64_t top;   // address of the last entry, or of `none`: the table was never used
  uint64_t replaced;
  uint64_t reserved[2];
  PendingCall none;
  PendingCall calls[kEntries];  // return_slot 0: free

  // To be called before the first use of memory that is all zero.
  void begin_use() { IpcAtomics::store_relaxed(top, address_of(none)); }
  bool was_used() { return IpcAtomics::load_relaxed(top) != address_of(none); }

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
  // Address of the innermost call, or of `outermost`. Threads that look for a free state
  // read it; relaxed, because they only see that there may be calls.
  uint64_t top;
  uint64_t last;                 // address of the last of calls[]
  StackRange own;                // the thread's stack; empty: not known
  PendingCall outermost;         // further out than any call; see begin_use()
  PendingCall calls[kMaxCalls];  // some of those in use may have the return_slot 0
  uint32_t* owner;               // lock of its thread's state; null: never used
  uint64_t is_mixed;             // calls may stand among those of other stacks
  uint64_t is_compacting;
  uint64_t full_top;  // innermost return slot when compact() last found nothing to drop
  LeftCalls left;
  TimedCalls timed;
  ForkFrames at_fork;    // as the thread last called fork; a child finds it here
  uint64_t large_edges;  // address of a CallEdges::LargeTable; 0: it never needed one

  // To be called before the first use of memory that is all zero. All calls are inside of
  // `outermost`, so that nothing needs to ask whether there is a call.
  void begin_use() {
    outermost.return_slot = UINTPTR_MAX;
    IpcAtomics::store_relaxed(top, address_of(outermost));
    last = address_of(calls[kMaxCalls - 1]);
    left.begin_use();
  }

  PendingCall* innermost() {
    return reinterpret_cast<PendingCall*>(static_cast<uintptr_t>(top));
  }
  // How many of calls[] are in use.
  uint64_t count() {
    return (IpcAtomics::load_relaxed(top) - address_of(outermost)) / sizeof(PendingCall);
  }

  // Adds a call, after those were dropped whose slot it takes, and those moved to `left`
  // that seem to be open no more. `inside`: the call has
  // the return slot of one that is still pending, because that one's callee jumped to it.
  // False: there is no room.
  bool push(const ThreadStacks& stacks, const PendingCall& call, bool inside) {
    if (__builtin_expect(!has_room_inside(stacks, call.return_slot), 0)) {
      return push_slow(stacks, call, inside);
    }
    add(call);
    return true;
  }

  // Whether a call with this return slot is made by what the innermost call called, as
  // far as one can see from the slot, and there is room for it.
  bool has_room_inside(const ThreadStacks& stacks, uintptr_t return_slot) {
    const uint64_t at = top;
    if (!is_above(last, at)) return false;
    const uintptr_t& outer = reinterpret_cast<PendingCall*>(at)->return_slot;
    return is_above(outer, return_slot) && !stacks.is_on_signal_stack(outer);
  }
  // Adds a call inside of the innermost one. REQUIRES: there is room.
  void add(const PendingCall& call) {
    const auto at = static_cast<uintptr_t>(read_anew(top));
    store(*kept_pointer(reinterpret_cast<PendingCall*>(at) + 1), call);
  }

  // The innermost call of all, if it has this return slot. Else null.
  PendingCall* top_at(uintptr_t return_slot) {
    PendingCall* call = innermost();
    return call->return_slot == return_slot ? call : nullptr;
  }
  // The same, if the one around it has another one, as is usual for a call that returns.
  PendingCall* only_top(uintptr_t return_slot) {
    PendingCall* call = top_at(return_slot);
    const bool is_only = call != nullptr && (call - 1)->return_slot != return_slot;
    return is_only ? call : nullptr;
  }
  // REQUIRES: the innermost call is the one that has returned. Calls that are over may be
  // innermost then, until the next one is added.
  void drop_top() {
    IpcAtomics::add_to_own_relaxed(top, 0 - uint64_t{sizeof(PendingCall)});
  }

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

  // Whether any may still return. Also of memory that is all zero.
  bool has_calls() {
    return IpcAtomics::load_relaxed(top) != 0 && (count() != 0 || left.was_used());
  }

  // Drops the calls of a thread that is dead, but for those on other stacks than its own:
  // they belong to coroutines, with which another thread may go on.
  void drop_own();

 private:
  // Stores the call at `to`, and makes it the innermost one.
  void store(PendingCall& to, const PendingCall& call) {
    do {
      // The slot first: by it we see below whether the rest is ours too.
      to.return_slot = call.return_slot;
      std::atomic_signal_fence(std::memory_order_seq_cst);
      to.return_address = call.return_address;
      to.key = call.key;
      std::atomic_signal_fence(std::memory_order_seq_cst);
      store_word(top, address_of(to));
      std::atomic_signal_fence(std::memory_order_seq_cst);
      // A signal handler that came before that store used the entry for a call of its
      // own, which had another return slot. The next handler may take that one for a call
      // that was left, and drop the entry.
    } while (
        __builtin_expect(to.return_slot != call.return_slot || top != address_of(to), 0));
  }

  __attribute__((noinline)) bool push_slow(const ThreadStacks& stacks, PendingCall call,
                                           bool inside);

  // The next call further out with the same return slot; null: that was the last.
  PendingCall* next_at(PendingCall* call) {
    return call > calls && (call - 1)->return_slot == call->return_slot ? call - 1
                                                                        : nullptr;
  }
  void set_count(uint64_t calls_left) {
    IpcAtomics::store_relaxed(top,
                              address_of(outermost) + calls_left * sizeof(PendingCall));
  }
  // Leaves `calls_left` in use, without calls at the top that are over.
  void trim(uint64_t calls_left) {
    while (calls_left > 0 && calls[calls_left - 1].return_slot == 0) --calls_left;
    set_count(calls_left);
  }
  // Moves those of calls[from] to calls[to - 1] to `left` whose return slot is_left().
  template <class IsLeft>
  void leave(const StackRange& stack, uint64_t from, uint64_t to, const IsLeft& is_left);
  void compact();
};
static_assert(sizeof(PendingCall) == 24 && offsetof(PendingCall, return_address) == 8);
static_assert(offsetof(LeftCalls, next) == 0 && offsetof(LeftCalls, top) == 8 &&
              offsetof(LeftCalls, none) == 40 && offsetof(LeftCalls, calls) == 64);
static_assert(offsetof(PendingCalls, next) == 0 && offsetof(PendingCalls, top) == 8 &&
              offsetof(PendingCalls, outermost) == 40 &&
              offsetof(PendingCalls, calls) == 64);

// Address of the first of all linked ones, which are never unlinked. After the last one
// come all threads' LeftCalls, so that unwinders search these last.
extern uint64_t first_pending_calls;

// What separates the two, laid out like the heads of both.
struct PendingCallsEnd {
  uint64_t next;  // address of the first LeftCalls
  uint64_t top;   // address of `none`
  uint64_t reserved[3];
  PendingCall none;
};
static_assert(offsetof(PendingCallsEnd, next) == 0 &&
              offsetof(PendingCallsEnd, top) == 8 &&
              offsetof(PendingCallsEnd, none) == 40);
extern PendingCallsEnd pending_calls_end;

// The addresses to which pending calls return are in a block of this size, aligned to it:
// one of them stands in the slot of a call that is pending. Until it is set, and where it
// is 0, nothing is read there.
inline constexpr uintptr_t kStubBlockBytes = 512;
void set_stub_block(uintptr_t block);
extern __attribute__((visibility("hidden"))) uintptr_t stub_block;
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
