// The private memory of a thread that writes: its position in its block, its slot, its
// losses, its open frames; and its thread-local variables, which it has even while it has
// no state. States live in arenas that fork wipes (MADV_WIPEONFORK). A child finds zeros
// there, however it was forked, so its first record takes the slow path, where it gets a
// new identity.
#pragma once

#include <arctrace/format.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/base/shared_atomics.hpp"
#include "src/protocol/handout.hpp"
#include "src/protocol/shared_chain.hpp"
#include "src/stack/call_edges.hpp"
#include "src/stack/coroutine_stacks.hpp"
#include "src/stack/open_calls.hpp"
#include "src/stack/saved_frames.hpp"

namespace arctrace::writer {

// The thread's position in its exclusive block.
struct ExclusiveBlock {
  // The longest record for which the fast path compares the record's beginning with
  // `limit`.
  static constexpr uint32_t kShortRecord = 16;

  std::byte* pos;
  std::byte* limit;     // from here on the fast path begins no record of kShortRecord
  uint64_t base_ticks;  // the next record's tick delta counts from here
  // The same, for the fast path by the clock word; 0: the next record needs another time,
  // because the records of a signal handler have that one.
  uint64_t word_ticks;
  std::byte* end;    // == pos: there is no block, or none yet
  bool is_open;      // the fields above, and the block's opening records, are in order
  uint64_t serial;   // of the next exclusive block to be opened
  uint64_t opening;  // serial + 1: the thread owns that block already
  Handout<IpcAtomics>::Taken taken;

  bool is_opening() const { return opening == serial + 1; }
  void set_space(std::byte* from, std::byte* to) {
    pos = from;
    end = to;
    limit = to - kShortRecord + sizeof(uint32_t);  // records begin at multiples of a word
  }
  // Ends the space: no record is written there any more.
  void end_space() { limit = end = pos; }
  void forget() { pos = limit = end = nullptr; }
};

// The writer slot that the thread holds, and its identity there.
struct SlotHolder {
  // The distance in bytes from `none` to the slot. It is 0 in a fork child, whose state
  // is wiped: if a call goes on there that its parent's handler interrupted, its stores
  // to the slot go to `none`.
  uintptr_t distance;
  arctrace_writer_slot none;
  uint32_t index;
  uint32_t writer;
  uint32_t tid;
  uint16_t retry;   // records to lose before the thread asks for a slot again
  uint32_t probed;  // slots that it has checked in vain
  uint64_t start_ticks;

  bool is_wiped() const { return distance == 0; }
  // The thread's slot; its address is computed at each call.
  arctrace_writer_slot& slot() {
    return *reinterpret_cast<arctrace_writer_slot*>(
        reinterpret_cast<uintptr_t>(&none) +
        __atomic_load_n(&distance, __ATOMIC_RELAXED));
  }
};

// How far the thread's definitions are written.
struct DefinitionProgress {
  bool are_enough;             // all definitions that its records need were written once
  bool has_thread;             // its THREAD record is written ...
  uint32_t thread_generation;  // ... for this generation (see definitions_generation())
  bool is_counted;  // as lost, because there was no space for its THREAD record
};

// The thread's position in the session's shared chain.
struct ChainPosition {
  uint64_t block;        // name of the shared block that has the thread's STACK; 0: none
  uint64_t since_ticks;  // when `budget` was set
  uint64_t not_before;   // the thread's earlier records elsewhere are not later than this
  // By the clock word: of the last record of a handler that interrupted the writer.
  uint64_t handler_ticks;
  uint32_t budget;  // bytes to write before the next decision where the thread writes
  uint32_t stack_generation;  // control.definitions_round when a whole STACK was written
  uint64_t stack_ticks;       // when that was
  // The part of `budget` that the fast path may write into `known` before the thread
  // takes the slow path again. 0: none, because something is to be written or decided
  // first.
  uint32_t granted;
  KnownBlock known;  // the same block as `block`; valid while `granted` is not 0

  // Takes the grant of grant_chain_bytes() back; a signal handler may do so, too.
  // `unused` bytes that the fast path took last were not written.
  void take_grant_back(uint32_t unused = 0) {
    const uint32_t back = granted + unused;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    granted = 0;
    // If this interrupted the fast path, `granted` may just have wrapped.
    if (back <= INT32_MAX) budget += back;
  }
  // Has the thread's next record in the chain come with a STACK.
  void leave_block() {
    take_grant_back();
    block = 0;
  }
};

// Losses that no LOST record counts yet.
struct PendingLosses {
  bool pending;
  // A change of the open frames was lost: readers have wrong frames until the thread's
  // next STACK.
  bool stack_differs;
  uint64_t since_ticks;
  uint64_t freed_seen;  // control.freed + 1 when no block was free: search again later
  uint64_t full_chain;  // the shared chain's word at that time
  uint64_t at_start[ARCTRACE_LOST_CAUSES];  // the slot's counts, of earlier owners
};

// A record reserved in place (arctrace_reserve).
struct InPlaceRecord {
  static constexpr uint64_t kUnused = 0;
  static constexpr uint64_t kClaimed = 1;  // a writer call is changing it
  static constexpr uint64_t kOfBlock = 2;  // the place pins a block (pin_block())
  uint64_t payload;                        // address, or one of these
  std::byte* word0;
  uint32_t committed;
  bool is_by_fields;  // the filter checks its fields once these are filled in
};

// The WAITING record of the thread, and the open frames that are published there.
struct PublishedCalls {
  std::byte* body;      // null: there is no record
  uint32_t pin;         // which of the slot's held[] words pins its block
  uint32_t generation;  // DefinitionProgress::thread_generation when it was written
  uint64_t freed_seen;  // control.freed + 1 when a place for it was last searched
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
  bool begins_in_frames;   // in frames open when it was joined, that no STACK has yet
  PendingCalls* calls;     // in memory that fork does not wipe
  uint32_t vfork_depth;    // open frames when vfork was called
  uint32_t coroutine;      // on whose stack the open frames are; 0: the thread's own
  bool vfork_is_recorded;  // its VFORK_BEGIN was not lost
  // A coroutine stack (coroutine_stacks.hpp) that counts as the thread's own, because the
  // thread was forked there; 0: none.
  uintptr_t forked_on;
  bool is_switching;  // the open frames are being exchanged for those of another stack
  CurrentStackCache current_stack;  // the current-stack cache, on the coroutine's stack
  InPlaceRecord places[ARCTRACE_HELD_COUNT];
  PublishedCalls published;
  uint64_t filter_verdict;  // of the record filter (record_filter.cpp)
  char name[64];            // as arctrace_thread_name gave it; empty: the kernel's

  // The lock shows whether the thread lives, so that the state can be reused after its
  // death. The members before the lock are cleared then; those after robust_next have
  // counts that say how much of them is in use.
  uint32_t lock;
  uint32_t lock_padding[5];
  uint64_t robust_prev;
  uint64_t robust_next;

  OpenFrames open;
  CallEdges::SmallTable edges;
  FilteredFrames filtered;  // of the open frames
  uint64_t saved_frames;    // address of its SavedFrames; 0: none was needed so far
  ThreadLocal* local;       // the thread's; null: it has only just claimed the state
};
static_assert(offsetof(ThreadState, robust_next) - offsetof(ThreadState, lock) ==
              ARCTRACE_ROBUST_NODE_OFFSET);

// Has the thread's next record begin a block, or follow its place in a shared one, with a
// STACK. Only for the outermost writer call.
inline void require_stack(ThreadState& state) {
  state.block.end_space();
  state.chain.leave_block();
}

// A change of the number of open frames whose record is being written. A signal handler
// that finds it unfinished, or a call after one that a handler's jump abandoned, sees by
// the record whether the change counts.
struct StackChange {
  std::byte* word0;  // of the record; null: there is none
  FrameCount depth;  // of open frames when the record is complete
};

struct ThreadLocal {
  ThreadState* state;  // null before the first record
  // The stack pointer of the outermost writer call in progress, or 0; its lowest bit is
  // set once another call has interrupted that one.
  uintptr_t guard;
  uint32_t nesting;        // writer calls in progress inside the outermost one
  uint32_t nested_frames;  // see added_frames()
  StackChange change;      // of the innermost call in progress
  // These are here, not in the state: a hook that is interrupted by a handler which forks
  // goes on in the child, where the state is wiped.
  CallEdges edges;
  // The number of outermost frames of which a call in progress is about to record that
  // some have ended; 0: none.
  uint32_t leaving;
  ThreadStacks stacks;  // here, not in the state: a fork child runs on the same ones
  PendingCalls* calls;  // the state's; here for the same reason
  // The last coroutine stack that was made before the thread began.
  uint32_t last_stack_before;
  // The number of the session, as stack_switch.hpp counts them, in which it is known
  // which functions were open when the thread began.
  uint32_t frames_known_in;
  // The filter's context inside the innermost open frame, and outside all of them. A fork
  // child begins with the former, and stubs look there first.
  FilterContext filter_context;
  FilterContext filter_outermost;
  // Index + 1 of the frame whose waiting entry `change` records; 0: none.
  uint32_t reporting;
  // See share_storage().
  uint32_t owner;       // id of the thread whose storage this is; 0: it is not shared
  uintptr_t own_guard;  // that thread's guard, while its storage is shared
  uintptr_t window_of_thread;  // a stack pointer of the thread; others near it are, too
  bool is_vforking;            // a task that the thread waits for uses its storage
  bool vfork_has_begun;        // in this session, while calls were recorded
  // The identities that the thread last had. They survive fork, so that a child finds its
  // parent's here.
  uint32_t last_writer;
  uint32_t last_process;
};
// The model is initial-exec, because the dynamic TLS model may allocate on first use,
// inside a hook.
extern thread_local constinit ThreadLocal thread_local_state
    __attribute__((tls_model("initial-exec")));

inline uintptr_t stack_pointer() {
  uintptr_t sp;
#if defined(__x86_64__)
  asm volatile("mov %%rsp, %0" : "=r"(sp));
#else
  asm volatile("mov %0, sp" : "=r"(sp));
#endif
  return sp;
}

// An address above the calling function's frame, and above all stack pointers that it
// has. It is inlined, because the result belongs to the frame of the calling function.
__attribute__((always_inline)) inline uintptr_t frame_end() {
  return reinterpret_cast<uintptr_t>(__builtin_dwarf_cfa());
}

// A cleared state for the calling thread, claimed for its lifetime; `current` itself if
// that is this thread's already, or was before a fork. Null if there is no memory or no
// robust list.
ThreadState* claim_thread_state(ThreadState* current, uint32_t tid);

// The state's SavedFrames, which are made now if it has none. Null: no memory.
SavedFrames* saved_frames(ThreadState& state);

// Clears the state of an earlier thread, except for the lock and the members that belong
// to it.
void clear_thread_state(ThreadState& state);

// Calls visit(state) for each claimed state, whether its thread lives or is dead.
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

// Forgets the calls of threads that are dead, because another thread's stack may be made
// where theirs was.
void forget_dead_threads_calls();

// Whether any thread is in a writer call, or shares its thread-local storage with another
// task: for a process that leaves its session for another one. REQUIRES: the other
// threads are stopped outside of the functions of this library.
bool is_any_thread_writing();

// Clears the states of all threads, so that the next record of each attaches it anew, to
// the session that the process has joined by then. Calls that return to the shim's stubs
// still do, unrecorded. REQUIRES: no thread is in a writer call or begins one.
void renew_thread_states();

}  // namespace arctrace::writer
