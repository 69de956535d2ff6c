// The open frames and calls of a thread: the frames of functions, as its hooks saw them,
// outermost first; and the calls that go through the shim, with the return addresses that
// the shim's stubs have replaced.
#pragma once

#include <arctrace/format.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/base/memory.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/stack/call_edges.hpp"
#include "src/stack/timed_calls.hpp"

namespace arctrace::writer {

struct OpenFrame {
  uint64_t key;  // function address or name key
  MachineFrame frame;

  // Stores a frame here; its `cfa` last. REQUIRES: that is 0 until then.
  __attribute__((always_inline)) void store(uint64_t its_key,
                                            const MachineFrame& its_frame) {
    key = its_key;
    if (its_frame.cfa == 0) {
      // The values are zeros, most likely, of which gcc stores several at once.
      frame.call_site = its_frame.call_site;
      frame.hook_site = its_frame.hook_site;
      frame.stack_pointer = its_frame.stack_pointer;
      frame.flags = its_frame.flags;
      return;
    }
    // The values are stored one by one: otherwise gcc puts two together before it stores
    // them.
    frame.call_site = its_frame.call_site;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    frame.hook_site = its_frame.hook_site;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    frame.stack_pointer = its_frame.stack_pointer;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    frame.flags = its_frame.flags;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    frame.cfa = its_frame.cfa;
  }
};

using FrameCount = OffsetCount<OpenFrame, uint32_t>;

// The open frames. All members but `depth` still have values of earlier calls: nothing
// needs to be cleared.
struct OpenFrames {
  static constexpr uint32_t kMax = ARCTRACE_OPEN_FRAMES_MAX;

  FrameCount depth;   // of open frames; beyond kMax they are only counted
  OpenFrame outside;  // frame_at() of the frame around the outermost one: always zero
  OpenFrame frames[kMax];

  // The depth, read once more although it is the same as before.
  FrameCount depth_anew() const { return depth.load_anew(); }

  // How many of the frames are stored: the outermost ones.
  uint32_t stored() const { return depth < kMax ? uint32_t{depth} : kMax; }

  // The innermost frame, if it is stored; else null.
  const OpenFrame* innermost() const { return stored_frame_at(depth.previous()); }
  // The frame with index `at`, which may be the one before the first, if it is stored;
  // else null.
  const OpenFrame* stored_frame_at(FrameCount at) const {
    if (at.offset() >= FrameCount(kMax).offset()) return nullptr;
    const OpenFrame* frame = frame_at(at);
    if (frame == nullptr) __builtin_unreachable();
    return frame;
  }
  // The innermost frame, if it is stored and belongs to `key`; else null.
  const OpenFrame* innermost(uint64_t key) const {
    const OpenFrame* frame = innermost();
    return frame != nullptr && frame->key == key ? frame : nullptr;
  }

  // The frame with index `at`. REQUIRES: it is stored, or `outside`, which is the one
  // before the first.
  const OpenFrame* frame_at(FrameCount at) const {
    return reinterpret_cast<const OpenFrame*>(reinterpret_cast<uintptr_t>(frames) +
                                              at.offset());
  }
  OpenFrame* frame_at(FrameCount at) {
    return reinterpret_cast<OpenFrame*>(reinterpret_cast<uintptr_t>(frames) +
                                        at.offset());
  }

  // The place of the frame with index `at`; null: it is only counted.
  OpenFrame* slot(uint32_t at) { return at < kMax ? &frames[at] : nullptr; }

  // Until the frame with index `at` is stored, nothing is known of it.
  void forget_cfa(uint32_t at) {
    if (OpenFrame* to = slot(at); to != nullptr) to->frame.cfa = 0;
  }

  // Stores a frame at index `at`, without a change of the depth. REQUIRES:
  // forget_cfa(at) was called.
  void store(uint32_t at, uint64_t key, const MachineFrame& frame) {
    if (OpenFrame* to = slot(at); to != nullptr) to->store(key, frame);
  }
};

static_assert(offsetof(OpenFrames, frames) - offsetof(OpenFrames, outside) ==
              sizeof(OpenFrame));

// The open frames of a thread that forks, for its child: in memory that fork does not
// wipe.
struct ForkFrames {
  uint64_t keys[OpenFrames::kMax];  // outermost first
  bool are_known;
  uint32_t depth;  // how many frames readers should know
  uint32_t count;  // how many of them are stored here: all, or none
};

// A call that is pending. The unwind rules in writer_shim/arch/*/call_stubs.S know this
// layout.
struct PendingCall {
  // A key that no frame has: nothing was recorded of the call.
  static constexpr uint64_t kNotRecorded = UINT64_MAX;
  // A bit in the key, so that the key is no frame's: the call has the return slot of the
  // one around it, because the callee of that one jumped to it, and both end together.
  static constexpr uint64_t kInside = uint64_t{1} << 60;

  uintptr_t return_slot;  // where its return address was; 0: returned, or abandoned
  uintptr_t return_address;
  uint64_t key;  // of its frame
};

inline uint64_t address_of(const PendingCall& call) {
  return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(&call));
}

// A thread's abandoned calls, as far as their positions show that: a hash table by their
// slots. A slot that was used twice belongs to the later call, because that one's return
// address has replaced the other's in memory. So if a call returns to its slot, and is no
// pending call, it is the one that is found here. A call whose slot has another value
// meanwhile can't return, and is dropped when its entry is needed. If there are more than
// kProbes others with neighbouring hashes, the table forgets one.
//
// Its head is laid out like that of PendingCalls, so that unwinders search it alike.
struct AbandonedCalls {
  static constexpr uint32_t kEntries = 4096;
  static constexpr uint32_t kProbes = 16;

  uint64_t next;  // address of another thread's table, 0: the last
  uint64_t top;   // address of the last entry, or of `none`: the table was never used
  uint64_t replaced;
  uint64_t reserved[2];
  PendingCall none;
  PendingCall calls[kEntries];  // return_slot 0: free

  // To be called before the first use of memory that is all zero.
  void begin_use() { IpcAtomics::store_relaxed(top, address_of(none)); }
  bool was_used() { return IpcAtomics::load_relaxed(top) != address_of(none); }

  // Adds an abandoned call. `own`: the stack whose slots can be read.
  void add(const StackRange& own, const PendingCall& call);
  PendingCall* find(uintptr_t return_slot);
  void clear();

 private:
  PendingCall& probe(uintptr_t return_slot, uint32_t i) {
    return calls[(return_slot / sizeof(uintptr_t) + i) % kEntries];
  }
};

// The return addresses of calls that go through the shim. The shim's stub writes its own
// address over the caller's return address on the stack, so each thread keeps the real
// ones here, by the stack slots from which they were taken.
//
// Unlike thread states, these survive fork, because a child returns through its parent's
// calls. Unwinders search them too, in any thread and at any instruction. Therefore a
// call is complete before it is the innermost one, and it stays until its return address
// is back in its slot. Signal handlers push and drop calls on top, and at their end the
// same call is innermost as before; the thread then writes again what they may have
// overwritten.
//
// A call that a jump seems to have abandoned, because a call further out on its stack was
// begun or has returned, may still return: a coroutine's stack may be a local array of
// the thread's own stack. So such calls are moved to AbandonedCalls, by their exact slot.
struct PendingCalls {
  static constexpr uint32_t kMaxCalls = 4096;

  uint64_t next;  // address of another thread's calls, or of the list's end
  // The address of the innermost call, or of `outermost`. Threads that search for a free
  // state read it; relaxed, because they only see that there may be calls.
  uint64_t top;
  uint64_t last;                 // address of the last of calls[]
  StackRange own;                // the thread's stack; empty: not known
  PendingCall outermost;         // further out than any call; see begin_use()
  PendingCall calls[kMaxCalls];  // some of those in use may have the return_slot 0
  // The words from the end of `at_fork` to the beginning of `abandoned` are on one page,
  // most likely: a thread that begins touches all of them.
  ForkFrames at_fork;  // the frames at the last call of fork; a child finds them here
  uint32_t* owner;     // lock of its thread's state; null: never used
  uint64_t is_mixed;   // calls may be among those of other stacks
  uint64_t is_compacting;
  uint64_t full_top;  // innermost return slot when compact() last found nothing to drop
  uint64_t large_edges;  // address of a CallEdges::LargeTable; 0: none was needed so far
  AbandonedCalls abandoned;
  TimedCalls timed;

  // To be called before the first use of memory that is all zero. All calls are inside of
  // `outermost`, so that no code needs to check whether there is a call.
  void begin_use() {
    outermost.return_slot = UINTPTR_MAX;
    IpcAtomics::store_relaxed(top, address_of(outermost));
    last = address_of(calls[kMaxCalls - 1]);
    abandoned.begin_use();
  }

  PendingCall* innermost() {
    return reinterpret_cast<PendingCall*>(static_cast<uintptr_t>(top));
  }
  // How many of calls[] are in use.
  uint64_t count() {
    return (IpcAtomics::load_relaxed(top) - address_of(outermost)) / sizeof(PendingCall);
  }

  // Adds a call. First drops the calls whose slot it takes, and moves those to
  // `abandoned` that seem to be open no more. `inside`: the call has the return slot of
  // one that is still pending, because the callee of that one jumped to it. False: there
  // is no space.
  bool push(const ThreadStacks& stacks, const PendingCall& call, bool inside) {
    if (__builtin_expect(!has_space_inside(stacks, call.return_slot), 0)) {
      return push_slow(stacks, call, inside);
    }
    add(call);
    return true;
  }

  // Whether a call with this return slot is made inside the innermost call, as far as one
  // can see from the slot, and there is space for it.
  bool has_space_inside(const ThreadStacks& stacks, uintptr_t return_slot) {
    const uint64_t at = top;
    if (!is_above(last, at)) return false;
    const uintptr_t& outer = reinterpret_cast<PendingCall*>(at)->return_slot;
    return is_above(outer, return_slot) && !stacks.is_on_signal_stack(outer);
  }
  // Adds a call inside of the innermost one. REQUIRES: there is space.
  void add(const PendingCall& call) {
    const auto at = static_cast<uintptr_t>(read_anew(top));
    store(*pointer_in_register(reinterpret_cast<PendingCall*>(at) + 1), call);
  }

  // The innermost call of all, if it has this return slot. Else null.
  PendingCall* top_at(uintptr_t return_slot) {
    PendingCall* call = innermost();
    return call->return_slot == return_slot ? call : nullptr;
  }
  // As top_at(), if the call around it has another return slot, as is usual for a call
  // that returns.
  PendingCall* only_top(uintptr_t return_slot) {
    PendingCall* call = top_at(return_slot);
    const bool is_only = call != nullptr && (call - 1)->return_slot != return_slot;
    return is_only ? call : nullptr;
  }
  // Drops the innermost call. REQUIRES: it is the one that has returned. Calls that are
  // over may be innermost then, until the next one is added.
  void drop_top() {
    IpcAtomics::add_to_own_relaxed(top, 0 - uint64_t{sizeof(PendingCall)});
  }

  // The innermost call with this return slot, or null.
  PendingCall* find(uintptr_t return_slot);

  // Calls visit(call) for the innermost call with this return slot, and for those that
  // ended with a jump to it, from the inside out. REQUIRES: there is one. visit() may
  // move it to another thread's calls.
  template <class Visit>
  void for_each_at(uintptr_t return_slot, const Visit& visit) {
    PendingCall* call = find(return_slot);
    while (call != nullptr) {
      PendingCall* outer = next_at(call);
      visit(PendingCall(*call));
      call = outer;
    }
  }

  // Drops the calls that for_each_at() visits, and moves those that were made inside them
  // to `abandoned`. REQUIRES: their return address is back in its slot.
  void drop(const ThreadStacks& stacks, uintptr_t return_slot);

  // As drop(), by another thread than the one to which the calls belong.
  void drop_from_afar(uintptr_t return_slot);

  // Takes calls of another thread over that were made on a stack on which this thread
  // goes on, in a frame that ends at `goes_on`. Calls further in are dropped: they are
  // abandoned. The frame's own slot may be that of a call that ended with a jump to it,
  // or have been used again here. If each thread kept the calls that it began, an
  // abandoned call and an open one might have the same slot, and nothing would show which
  // one returns. The other thread may run meanwhile, and use entries of its abandoned
  // calls for new ones.
  void take_over(PendingCalls& from, const StackRange& stack, uintptr_t goes_on);

  // Marks all calls so that nothing is recorded of their returns.
  void leave_unrecorded();

  // Whether any call may still return. It may be called for memory that is all zero.
  bool has_calls() {
    return IpcAtomics::load_relaxed(top) != 0 && (count() != 0 || abandoned.was_used());
  }

  // Drops the calls of a thread that is dead, except those on other stacks than its own:
  // they belong to coroutines, with which another thread may go on.
  void drop_own();

 private:
  // Stores the call at `to`, and makes it the innermost one.
  void store(PendingCall& to, const PendingCall& call) {
    do {
      // The slot is stored first: below it shows whether the rest is of this call, too.
      to.return_slot = call.return_slot;
      std::atomic_signal_fence(std::memory_order_seq_cst);
      to.return_address = call.return_address;
      to.key = call.key;
      std::atomic_signal_fence(std::memory_order_seq_cst);
      store_word(top, address_of(to));
      std::atomic_signal_fence(std::memory_order_seq_cst);
      // A signal handler that came before that store used the entry for a call of its
      // own, which had another return slot. The next handler may take that call for an
      // abandoned one, and drop the entry.
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
  // Leaves the outermost `calls_left` calls in use, without calls at the top that are
  // over.
  void trim(uint64_t calls_left) {
    while (calls_left > 0 && calls[calls_left - 1].return_slot == 0) --calls_left;
    set_count(calls_left);
  }
  // Moves those of calls[from] to calls[to - 1] to `abandoned` for whose return slot
  // is_abandoned() is true.
  template <class IsAbandoned>
  void leave(const StackRange& stack, uint64_t from, uint64_t to,
             const IsAbandoned& is_abandoned);
  void compact();
};
static_assert(sizeof(PendingCall) == 24 && offsetof(PendingCall, return_address) == 8);
static_assert(offsetof(AbandonedCalls, next) == 0 && offsetof(AbandonedCalls, top) == 8 &&
              offsetof(AbandonedCalls, none) == 40 &&
              offsetof(AbandonedCalls, calls) == 64);
static_assert(offsetof(PendingCalls, next) == 0 && offsetof(PendingCalls, top) == 8 &&
              offsetof(PendingCalls, outermost) == 40 &&
              offsetof(PendingCalls, calls) == 64);

// The address of the first PendingCalls; all are linked, and never unlinked. After the
// last one come all threads' AbandonedCalls, so that unwinders search these last.
extern uint64_t first_pending_calls;

// The separator between the two lists, laid out like the heads of both.
struct PendingCallsEnd {
  uint64_t next;  // address of the first AbandonedCalls
  uint64_t top;   // address of `none`
  uint64_t reserved[3];
  PendingCall none;
};
static_assert(offsetof(PendingCallsEnd, next) == 0 &&
              offsetof(PendingCallsEnd, top) == 8 &&
              offsetof(PendingCallsEnd, none) == 40);
extern PendingCallsEnd pending_calls_end;

// The addresses to which pending calls return are in a block of this size, aligned to it:
// the slot of a pending call has one of them. Until the block's address is set, and where
// it is 0, no slot is read.
inline constexpr uintptr_t kStubBlockBytes = 512;
void set_stub_block(uintptr_t block);
extern __attribute__((visibility("hidden"))) uintptr_t stub_block;
inline bool is_stub_return(uintptr_t address) {
  return (address ^ stub_block) < kStubBlockBytes;
}

// Links one thread's calls. To be called once for each.
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

// Whether the frames up to `innermost` surely are open when a function is entered at
// `now`, whose CFA is known: it is known to be called by the innermost of them.
inline bool is_known_call(const ThreadStacks& stacks, const CallEdges& edges,
                          const OpenFrame& innermost, const MachineFrame& now) {
  const MachineFrame& caller = innermost.frame;
  if (now.hook_site != 0) return edges.has(caller, now);
  // Without sites, only positions can be compared.
  return caller.cfa > now.cfa && !stacks.is_on_signal_stack(caller.cfa);
}

}  // namespace arctrace::writer
