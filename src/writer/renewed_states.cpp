#include "src/writer/renewed_states.hpp"

#include "src/base/memory.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/protocol/dead_slot.hpp"
#include "src/stack/pending_calls.hpp"
#include "src/writer/thread_local.hpp"

namespace arctrace {
namespace {

bool lives(ThreadState& state) { return is_live(IpcAtomics::load_acquire(state.lock)); }

// The name that the program gave the thread, and its pending calls, are kept.
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

}  // namespace arctrace
