// Maps the arenas of thread states, and claims, clears and finds states.
#include "src/writer/thread_state.hpp"

#include <sys/mman.h>

#include <atomic>

#include "src/base/large_table.hpp"
#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/os/kernel_use.hpp"
#include "src/os/robust_lock.hpp"
#include "src/protocol/block_state.hpp"
#include "src/stack/coroutine_stacks.hpp"
#include "src/stack/open_calls.hpp"

namespace arctrace::writer {

thread_local constinit ThreadLocal thread_local_state{};

namespace {

constexpr uint32_t kArenaStates = 64;
constexpr uint32_t kArenas = 1024;
constexpr uint32_t kPreparedArenas = 4;

struct Arena {
  ThreadState states[kArenaStates];
};

// The memory beside each arena that fork does not wipe.
struct PendingCallsArena {
  PendingCalls stacks[kArenaStates];
};

// Arenas are never unmapped. The table itself survives fork, so that a child reuses the
// arenas.
struct ArenaAddresses {
  uint64_t states;
  uint64_t calls;
};
constexpr uint32_t kFirstArenas = kPreparedArenas;
ARCTRACE_LARGE_TABLE constinit ArenaAddresses other_arenas[kArenas - kFirstArenas]{};
constinit SplitTable<other_arenas, kFirstArenas> arenas{};

// The T at `address`, mapped anew if that is 0. Null: no memory.
template <class T>
T* mapped(uint64_t& address, bool wiped_on_fork) {
  uint64_t found = IpcAtomics::load_acquire(address);
  if (found != 0) return reinterpret_cast<T*>(found);
  if (!may_call_kernel()) return nullptr;
  void* made = sys::map(sizeof(T), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (made == nullptr) return nullptr;
  if (wiped_on_fork && sys::advise(made, sizeof(T), MADV_WIPEONFORK) != 0) return nullptr;
  // If the first access to a page was not a store, it would cost two faults.
  word_at(static_cast<std::byte*>(made)) = 0;
  if (!IpcAtomics::compare_exchange_acq_rel(
          address, found, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(made)))) {
    raw_syscall(SYS_munmap, sys::pointer_argument(made), static_cast<long>(sizeof(T)));
    return reinterpret_cast<T*>(found);
  }
  return static_cast<T*>(made);
}

// Claims a state. REQUIRES: the state is not live, `seen` is its lock's word.
bool claim(ThreadState& state, uint32_t seen, PendingCalls& calls, uint32_t tid) {
  if (!robust_lock({state.lock, state.robust_prev, state.robust_next}, seen, tid)) {
    return false;
  }
  state.local = nullptr;
  clear_thread_state(state);
  state.calls = &calls;
  return true;
}

// Claims a state again in a fork child, whose states were wiped: only the thread that
// forked lives on.
bool claim_again(ThreadState& state, uint32_t tid) {
  PendingCalls* own = nullptr;
  for_each_pending_calls([&](PendingCalls& stack) {
    if (stack.owner == &state.lock) own = &stack;
  });
  if (own == nullptr || !claim(state, 0, *own, tid)) return false;
  for_each_pending_calls([&](PendingCalls& stack) {
    if (&stack != own) stack.drop_own();
  });
  end_change_of_parent();
  return true;
}

// Where to search for a free state. If many threads begin, they must not check all states
// each; so arenas that were found full are checked again only after as many claims as
// there are states in them. Threads that change these words at once do no harm.
uint32_t full_arenas;  // before the first that may have a free state
uint32_t claims;       // since all were checked

uint32_t first_arena() {
  if (IpcAtomics::load_relaxed(claims) <
      IpcAtomics::load_relaxed(full_arenas) * kArenaStates) {
    return IpcAtomics::load_relaxed(full_arenas);
  }
  IpcAtomics::store_relaxed(claims, uint32_t{0});
  return 0;
}

// Notes that a state was found in that arena, counted from 0.
void note_claim(uint32_t arena) {
  IpcAtomics::store_relaxed(full_arenas, arena);
  IpcAtomics::fetch_add_relaxed(claims, uint32_t{1});
}

// A free state in one of the arenas from `first` on.
ThreadState* claim_from(uint32_t first, uint32_t tid) {
  for (uint32_t a = first; a < kArenas; ++a) {
    auto* arena = mapped<Arena>(arenas[a].states, true);
    auto* calls = mapped<PendingCallsArena>(arenas[a].calls, false);
    if (arena == nullptr || calls == nullptr) return nullptr;
    for (uint32_t i = 0; i < kArenaStates; ++i) {
      ThreadState& state = arena->states[i];
      PendingCalls& stack = calls->stacks[i];
      const uint32_t seen = IpcAtomics::load_acquire(state.lock);
      // The state was wiped by fork, but has calls: the thread that forked may have to
      // return from them, and has not yet claimed its state again.
      const bool is_forked = seen == 0 && stack.has_calls();
      if (is_live(seen) || is_forked || !claim(state, seen, stack, tid)) continue;
      // No owner is compacting the calls any more. And the first access to the page is a
      // store, so that it costs one fault.
      stack.is_compacting = 0;
      std::atomic_signal_fence(std::memory_order_seq_cst);
      if (stack.owner == nullptr) {
        stack.owner = &state.lock;
        stack.begin_use();
        link_pending_calls(stack);
      } else {
        stack.drop_own();
        stack.own = {};
      }
      note_claim(a);
      return &state;
    }
  }
  return nullptr;
}

}  // namespace

void clear_thread_state(ThreadState& state) {
  fill_zero(&state, offsetof(ThreadState, lock));
  state.open.depth = 0;
  state.filtered.first_waiting = 0;
  state.filtered.reported_depth = 0;
  state.filtered.seen = false;
  state.filtered.may_wait = false;
  if (state.saved_frames != 0)
    reinterpret_cast<SavedFrames*>(state.saved_frames)->clear();
}

void visit_claimed_states(void (*visit)(void* context, ThreadState& state),
                          void* context) {
  for (uint32_t a = 0; a < kArenas && IpcAtomics::load_acquire(arenas[a].states) != 0;
       ++a) {
    auto* arena = reinterpret_cast<Arena*>(IpcAtomics::load_acquire(arenas[a].states));
    for (ThreadState& state : arena->states) {
      if (IpcAtomics::load_acquire(state.lock) != 0) visit(context, state);
    }
  }
}

ThreadState* claim_thread_state(ThreadState* current, uint32_t tid) {
  if (current != nullptr && IpcAtomics::load_relaxed(current->lock) == tid)
    return current;
  if (!has_robust_list()) return nullptr;
  if (current != nullptr && claim_again(*current, tid)) return current;
  const uint32_t first = first_arena();
  ThreadState* state = claim_from(first, tid);
  return state == nullptr && first != 0 ? claim_from(0, tid) : state;
}

// Fork need not wipe this memory, because the state that leads to it is wiped.
SavedFrames* saved_frames(ThreadState& state) {
  return mapped<SavedFrames>(state.saved_frames, false);
}

CallEdges::LargeTable* make_large_edges(ThreadState& state) {
  return mapped<CallEdges::LargeTable>(state.calls->large_edges, true);
}

void prepare_thread_states() {
  for (uint32_t a = 0; a < kPreparedArenas; ++a) {
    if (mapped<Arena>(arenas[a].states, true) == nullptr ||
        mapped<PendingCallsArena>(arenas[a].calls, false) == nullptr) {
      return;
    }
  }
}

void visit_arenas(void (*visit)(void* context, uintptr_t address, uint64_t size),
                  void* context) {
  for (uint32_t a = 0; a < kArenas && IpcAtomics::load_acquire(arenas[a].states) != 0;
       ++a) {
    auto* arena = reinterpret_cast<Arena*>(IpcAtomics::load_acquire(arenas[a].states));
    visit(context, reinterpret_cast<uintptr_t>(arena), sizeof(Arena));
    for (ThreadState& state : arena->states) {
      const uint64_t saved = IpcAtomics::load_acquire(state.saved_frames);
      if (saved != 0) visit(context, saved, sizeof(SavedFrames));
    }
    const uint64_t calls = IpcAtomics::load_acquire(arenas[a].calls);
    if (calls == 0) continue;
    visit(context, calls, sizeof(PendingCallsArena));
    for (PendingCalls& stack : reinterpret_cast<PendingCallsArena*>(calls)->stacks) {
      const uint64_t edges = IpcAtomics::load_acquire(stack.large_edges);
      if (edges != 0) visit(context, edges, sizeof(CallEdges::LargeTable));
    }
  }
}

void forget_dead_threads_calls() {
  const uint32_t tid = thread_id();
  if (tid == 0) return;
  for_each_pending_calls([tid](PendingCalls& stack) {
    uint32_t lock = IpcAtomics::load_acquire(*stack.owner);
    if (lock == 0 || is_live(lock) || !stack.has_calls()) return;
    // The lock is held meanwhile: a thread that took the state over would lose calls that
    // it must return from.
    const uint32_t dead = lock;
    if (!IpcAtomics::compare_exchange_acq_rel(*stack.owner, lock, tid)) return;
    stack.drop_own();
    IpcAtomics::store_release(*stack.owner, dead);
  });
}

namespace {

bool lives(ThreadState& state) { return is_live(IpcAtomics::load_acquire(state.lock)); }

// Clears the state, except for the name that the program gave the thread, and its pending
// calls.
void renew(ThreadState& state) {
  char name[sizeof state.name];
  copy_bytes(name, state.name, sizeof name);
  PendingCalls* const calls = state.calls;
  clear_thread_state(state);
  state.calls = calls;
  copy_bytes(state.name, name, sizeof name);
  if (!lives(state) || state.local == nullptr) return;
  ThreadLocal& local = *state.local;
  local.change = {};
  local.filter_context = {};
  local.filter_outermost = {};
  local.reporting = 0;
  local.vfork_has_begun = false;
  local.last_writer = 0;
  local.last_process = 0;
}

}  // namespace

bool is_any_thread_writing() {
  bool found = false;
  for_each_claimed_state([&](ThreadState& state) {
    if (!lives(state)) return;
    const ThreadLocal* local = state.local;
    found = found || local == nullptr || local->guard != 0 || local->owner != 0 ||
            local->is_vforking;
  });
  return found;
}

void renew_thread_states() {
  for_each_claimed_state([](ThreadState& state) { renew(state); });
  for_each_pending_calls([](PendingCalls& calls) { calls.leave_unrecorded(); });
}

}  // namespace arctrace::writer
