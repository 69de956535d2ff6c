// The private memory of a thread that writes: its position in its block, its slot, its
// losses, its open frames. States live in arenas that fork wipes (MADV_WIPEONFORK). A
// child finds zeros there, however it was forked, so its first record takes the slow
// path, where it gets a new identity.
#pragma once

#include <arctrace/format.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/base/shared_atomics.hpp"
#include "src/protocol/handout.hpp"
#include "src/protocol/shared_chain.hpp"
#include "src/stack/call_edges.hpp"
#include "src/stack/filtered_frames.hpp"
#include "src/stack/made_stacks.hpp"
#include "src/stack/open_frames.hpp"
#include "src/stack/parked_stacks.hpp"
#include "src/stack/pending_calls.hpp"

namespace arctrace {

// The thread's position in its exclusive block.
struct ExclusiveBlock {
  // The longest record for which the fast path compares its place as it is.
  static constexpr uint32_t kShortRecord = 16;

  std::byte* pos;
  std::byte* limit;     // from here on the fast path begins no record of kShortRecord
  uint64_t base_ticks;  // the next record's tick delta counts from here
  std::byte* end;       // == pos: there is no block, or none yet
  bool is_open;         // the fields above, and the block's opening records, are in order
  uint64_t serial;      // of the next exclusive block to be opened
  uint64_t opening;     // serial + 1: the thread owns that block already
  Handout<IpcAtomics>::Taken taken;

  bool is_opening() const { return opening == serial + 1; }
  void set_room(std::byte* from, std::byte* to) {
    pos = from;
    end = to;
    limit = to - kShortRecord + sizeof(uint32_t);  // records begin at words
  }
  // No record is written there any more.
  void take_room() { limit = end = pos; }
  void forget() { pos = limit = end = nullptr; }
};

// The writer slot that the thread holds, and its identity there.
struct SlotHolder {
  // From `none` to the slot, in bytes. 0 in a fork child, whose state is wiped: there a
  // call that its parent's handler interrupted may go on, and what it stores in its slot
  // goes to `none`.
  uintptr_t distance;
  arctrace_writer_slot none;
  uint32_t index;
  uint32_t writer;
  uint32_t tid;
  uint16_t retry;      // records to lose before the thread asks for a slot again
  uint32_t looked_at;  // slots that it has looked at in vain
  uint64_t start_ticks;

  bool is_wiped() const { return distance == 0; }
  // Which slot it is, is read at each call.
  arctrace_writer_slot& slot() {
    return *reinterpret_cast<arctrace_writer_slot*>(
        reinterpret_cast<uintptr_t>(&none) +
        __atomic_load_n(&distance, __ATOMIC_RELAXED));
  }
};

// How far the thread's definitions have got.
struct DefinitionProgress {
  bool are_enough;        // what its records need has been defined once
  bool has_thread;        // its THREAD record is written ...
  uint32_t thread_round;  // ... for this round (definitions_round() in definitions.hpp)
  bool is_counted;        // as lost, because there was no room for its THREAD record
};

// Where the thread writes in the session's shared chain.
struct ChainPosition {
  uint64_t block;        // name of the shared block that has the thread's STACK; 0: none
  uint64_t since_ticks;  // when `left` was set
  uint64_t not_before;   // the thread's earlier records elsewhere are not later than that
  uint32_t left;  // bytes to write before it is decided again where the thread writes
  uint32_t stack_round;  // control.definitions_round when a whole STACK was written
  uint64_t stack_ticks;  // when that was
  // Of `left`, what the fast path may write into `known` before the thread takes the slow
  // path again. 0: it may not, because something is to be written or decided first.
  uint32_t granted;
  KnownBlock known;  // the same block as `block`; valid while `granted` is not 0

  // Ends what grant_chain_bytes() has begun; also by a signal handler in between. Of what
  // the fast path took last, `unused` bytes were not written.
  void take_grant_back(uint32_t unused = 0) {
    const uint32_t back = granted + unused;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    granted = 0;
    // If it interrupted the fast path, what was granted may just have wrapped.
    if (back <= INT32_MAX) left += back;
  }
  // The thread's next record in the chain comes with a STACK.
  void leave_block() {
    take_grant_back();
    block = 0;
  }
};

// Losses that no LOST record reports yet.
struct PendingLosses {
  bool pending;
  // A change of the open frames was lost: what readers know of them is wrong until the
  // thread's next STACK.
  bool stack_differs;
  uint64_t since_ticks;
  uint64_t freed_seen;  // control.freed + 1 when no block was to be had: ask again later
  uint64_t full_chain;  // the shared chain's word at that time
  uint64_t at_start[ARCTRACE_LOST_CAUSES];  // the slot's counts, of earlier owners
};

// A record reserved in place (arctrace_reserve).
struct HeldRecord {
  static constexpr uint64_t kUnused = 0;
  static constexpr uint64_t kClaimed = 1;  // a writer call is at work on it
  static constexpr uint64_t kOfBlock = 2;  // hold_block()
  uint64_t payload;                        // address, or one of these
  std::byte* word0;
  uint32_t committed;
  bool is_by_fields;  // the filter is asked of its fields once these are filled in
};

// The WAITING record of the thread, and the open frames that are published there.
struct PublishedCalls {
  std::byte* body;      // null: there is no record
  uint32_t held;        // which of the slot's held[] words keeps its block
  uint32_t round;       // DefinitionProgress::thread_round when it was written
  uint64_t freed_seen;  // control.freed + 1 when it was last asked for
  uint32_t count;
  uint32_t frames[ARCTRACE_WAITING_CALLS_MAX];  // indices
  uint64_t ticks[ARCTRACE_WAITING_CALLS_MAX];   // of the entries
};

struct ThreadLocal;

struct ThreadState {
  ExclusiveBlock block;
  SlotHolder slot;
  bool attached;  // the thread has a slot in this process
  DefinitionProgress definitions;
  PendingLosses loss;
  ChainPosition chain;
  bool has_own_blocks;     // in the adaptive scope, at present
  bool begins_in_frames;   // that were open when it was joined, and no STACK tells yet
  PendingCalls* calls;     // in memory that fork keeps
  uint32_t vfork_depth;    // open frames when vfork was called
  uint32_t coroutine;      // on whose stack the open frames are; 0: the thread's own
  bool vfork_is_recorded;  // its VFORK_BEGIN was not lost
  // A made stack (made_stacks.hpp) that counts as the thread's own, because the thread
  // was forked there; 0: none.
  uintptr_t forked_on;
  bool is_switching;  // the open frames are being exchanged for those of another stack
  FollowedStack followed;  // on the coroutine's
  HeldRecord held[ARCTRACE_HELD_COUNT];
  PublishedCalls published;
  uint64_t filter_verdict;  // of the record filter (record_filter.cpp)
  char name[64];            // as arctrace_thread_name gave it; empty: the kernel's

  // The lock shows whether the thread lives, so that the state can be reused after its
  // death. What precedes the lock is cleared then; what follows robust_next has counts
  // that say how much of it is in use.
  uint32_t lock;
  uint32_t lock_padding[5];
  uint64_t robust_prev;
  uint64_t robust_next;

  OpenFrames open;
  CallEdges::SmallTable edges;
  FilteredFrames filtered;  // of the open frames
  uint64_t parked;          // address of its ParkedStacks; 0: it never needed any
  ThreadLocal* local;       // the thread's; null: it has only just taken the state
};
static_assert(offsetof(ThreadState, robust_next) - offsetof(ThreadState, lock) ==
              ARCTRACE_ROBUST_NODE_OFFSET);

// Has the thread's next record begin a block, or follow its place in a shared one, with a
// STACK. Only for the outermost writer call.
inline void require_stack(ThreadState& state) {
  state.block.take_room();
  state.chain.leave_block();
}

// A cleared state for the calling thread, taken for its life; `current` itself if that is
// this thread's already, or was before a fork. Null if there is no memory or no robust
// list.
ThreadState* claim_thread_state(ThreadState* current, uint32_t tid);

// The state's ParkedStacks, which are made now if it has none. Null: no memory.
ParkedStacks* parked_stacks(ThreadState& state);

// Clears what a thread has left there, but for the lock and what belongs to it.
void clear_thread_state(ThreadState& state);

// Calls visit(state) for each that was claimed, by a thread that lives or is dead.
void visit_claimed_states(void (*visit)(void* context, ThreadState& state),
                          void* context);
template <class Visit>
void for_each_claimed_state(const Visit& visit) {
  visit_claimed_states(
      [](void* context, ThreadState& state) {
        (*static_cast<const Visit*>(context))(state);
      },
      const_cast<Visit*>(&visit));
}

// The thread's large table of call edges, which is made now if it has none. Null: there
// is no memory. Only for the outermost writer call.
CallEdges::LargeTable* make_large_edges(ThreadState& state);

// Makes memory for some hundred threads, before system calls are forbidden.
void prepare_thread_states();

// Calls visit(address, size) for each mapping that was made for states.
void visit_arenas(void (*visit)(void* context, uintptr_t address, uint64_t size),
                  void* context);
template <class Visit>
void for_each_arena(const Visit& visit) {
  visit_arenas(
      [](void* context, uintptr_t address, uint64_t size) {
        (*static_cast<const Visit*>(context))(address, size);
      },
      const_cast<Visit*>(&visit));
}

// Forgets the calls of threads that are dead, because another one's stack may be made
// where theirs was.
void forget_dead_threads_calls();

}  // namespace arctrace
