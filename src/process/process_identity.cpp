// Makes the process' identity and its state, notes forks, and hands out work to one
// thread at a time.
#include "src/process/process_identity.hpp"

#include <sys/mman.h>

#include <cstddef>

#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/base/shared_atomics.hpp"
#include "src/os/kernel_use.hpp"
#include "src/os/process_facts.hpp"

namespace arctrace::writer {

namespace {

const BufferView* identities;  // the session's, once process_state is set
ProcessState* process_state;   // in a page that fork wipes
// The identity and the process id that this memory last had. They survive fork, so that a
// child finds its parent's here.
uint32_t last_process_id;
uint32_t last_pid;
// The time at which the process of last_process_id called the fork that led to this one,
// until this one has an identity; 0: not known. A process in between that made no
// identity changes nothing.
uint64_t forked_at;

}  // namespace

bool has_next_identity(uint32_t& next) {
  return IpcAtomics::load_relaxed(next) < ARCTRACE_IDENTITIES_END;
}

bool make_process_state(const BufferView& session_buffer) {
  if (process_state != nullptr) return true;  // of an earlier session
  void* page = sys::map(4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (page == nullptr || sys::advise(page, 4096, MADV_WIPEONFORK) != 0) return false;
  identities = &session_buffer;
  process_state = static_cast<ProcessState*>(page);
  // If the first access to the page was not a store, it would cost two faults.
  process_state->pid = 0;
  return true;
}

void forget_process_identity() {
  if (process_state != nullptr) fill_zero(process_state, sizeof *process_state);
  last_process_id = 0;
  last_pid = 0;
}

ProcessState* current_process(uint64_t ticks) {
  ProcessState* state = process_state;
  if (state == nullptr) return nullptr;
  if (IpcAtomics::load_acquire(state->phase) == ProcessState::kReady) return state;
  if (state->pid == 0 && !may_call_kernel()) return nullptr;
  if (!has_next_identity(identities->control().process_next)) return nullptr;
  uint32_t none = ProcessState::kNone;
  if (!IpcAtomics::compare_exchange_acq_rel(state->phase, none,
                                            uint32_t{ProcessState::kMaking})) {
    return none == ProcessState::kReady ? state : nullptr;
  }
  state->id =
      IpcAtomics::fetch_add_relaxed(identities->control().process_next, uint32_t{1});
  if (may_call_kernel()) state->pid = sys::getpid();
  last_pid = state->pid;
  state->parent_id = last_process_id;
  state->origin = last_process_id == 0 ? ARCTRACE_ORIGIN_EXEC : ARCTRACE_ORIGIN_FORK;
  state->start_ticks = ticks;
  if (state->origin == ARCTRACE_ORIGIN_FORK) state->forked_ticks = forked_at;
  forked_at = 0;
  last_process_id = state->id;
  IpcAtomics::store_release(state->phase, uint32_t{ProcessState::kReady});
  return state;
}

ProcessState* process_state_of_session() { return process_state; }

uint32_t process_id() {
  if (const uint32_t pid = known_pid(); pid != 0) return pid;
  return may_call_kernel() ? sys::getpid() : 0;
}

uint32_t begin_forked_process(uint32_t pid, uint64_t forked_ticks) {
  if (process_state == nullptr) return 0;
  const bool has_parent = forked_at == 0;
  if (has_parent) forked_at = forked_ticks;
  if (!may_call_kernel()) set_parent(last_pid);
  process_state->pid = pid;
  return has_parent ? last_process_id : 0;
}

uint32_t known_pid() {
  ProcessState* state = process_state;
  if (state == nullptr ||
      IpcAtomics::load_acquire(state->phase) != ProcessState::kReady) {
    return 0;
  }
  return state->pid;
}

bool is_new_process() {
  return process_state != nullptr && last_process_id != 0 &&
         IpcAtomics::load_relaxed(process_state->phase) == ProcessState::kNone;
}

}  // namespace arctrace::writer
