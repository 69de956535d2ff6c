#include "src/thread_state.hpp"

#include <sys/mman.h>

#include "src/memory.hpp"
#include "src/protocol/dead_slot.hpp"
#include "src/raw_syscall.hpp"
#include "src/robust_lock.hpp"

namespace arctrace {
namespace {

constexpr uint32_t kArenaStates = 64;
constexpr uint32_t kArenas = 1024;

struct Arena {
  ThreadState states[kArenaStates];
};

// Never unmapped. The table itself survives fork, so that a child reuses the arenas.
uint64_t arenas[kArenas];

Arena* arena_at(uint32_t index) {
  uint64_t address = IpcAtomics::load_acquire(arenas[index]);
  if (address != 0) return reinterpret_cast<Arena*>(address);
  void* made = sys::map(sizeof(Arena), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  if (made == nullptr) return nullptr;
  if (sys::advise(made, sizeof(Arena), MADV_WIPEONFORK) != 0) return nullptr;
  if (!IpcAtomics::compare_exchange_acq_rel(
          arenas[index], address,
          static_cast<uint64_t>(reinterpret_cast<uintptr_t>(made)))) {
    raw_syscall(SYS_munmap, sys::pointer_argument(made),
                static_cast<long>(sizeof(Arena)));
    return reinterpret_cast<Arena*>(address);
  }
  return static_cast<Arena*>(made);
}

bool claim(ThreadState& state, uint32_t tid) {
  const uint32_t seen = IpcAtomics::load_acquire(state.lock);
  return !is_live(seen) &&
         robust_lock({state.lock, state.robust_prev, state.robust_next}, seen, tid);
}

}  // namespace

ThreadState* claim_thread_state(ThreadState* current, uint32_t tid) {
  // In a fork child `current` was wiped, and its lock with it.
  if (current != nullptr && IpcAtomics::load_relaxed(current->lock) == tid)
    return current;
  if (!has_robust_list()) return nullptr;
  for (uint32_t a = 0; a < kArenas; ++a) {
    Arena* arena = arena_at(a);
    if (arena == nullptr) return nullptr;
    for (ThreadState& state : arena->states) {
      if (!claim(state, tid)) continue;
      // A dead thread's leftovers; the frames need no clearing, depth says none is open.
      fill_zero(&state, offsetof(ThreadState, lock));
      return &state;
    }
  }
  return nullptr;
}

}  // namespace arctrace
