// Lets a thread join the session: it takes private state, an identity, and a writer slot
// with a robust lock.
#include "src/base/raw_syscall.hpp"
#include "src/os/kernel_use.hpp"
#include "src/os/robust_lock.hpp"
#include "src/process/session.hpp"
#include "src/protocol/block_state.hpp"
#include "src/protocol/definitions_life.hpp"
#include "src/writer/definitions.hpp"
#include "src/writer/loss.hpp"
#include "src/writer/slow_path.hpp"

namespace arctrace::writer {
namespace {

constexpr uint32_t kNoSlot = UINT32_MAX;
// The number of records that a thread loses before it asks for a slot again: many if all
// slots were taken, few if it has checked no slot, or one is being reaped.
constexpr uint16_t kRetryLate = 1000;
constexpr uint16_t kRetrySoon = 10;
// The number of slots that one call checks. In a table that is full to nine tenths, one
// of these is free all but certainly.
constexpr uint32_t kSlotProbesMax = 256;
// Larger than any count of slots, and a prime: steps of this size lead to each slot, and
// away from neighbours that are all taken.
constexpr uint32_t kSlotStep = 2654435761;

// Takes a slot that is free or whose owner has died, unless the collector is reaping it.
bool lock_slot(arctrace_writer_slot& slot, uint32_t tid) {
  const uint32_t seen = IpcAtomics::load_acquire(slot.lock);
  // If a slot's tid stayed the same, it would not show that the slot changes hands (M2).
  if (seen != 0 && IpcAtomics::load_relaxed(slot.tid) == tid) return false;
  return !is_live(seen) && seen != kBeingReaped &&
         robust_lock({slot.lock, slot.robust_prev, slot.robust_next}, seen, tid);
}

bool is_being_reaped(arctrace_writer_slot& slot) {
  return IpcAtomics::load_relaxed(slot.lock) == kBeingReaped;
}

uint32_t claim_slot(const BufferView& view, SlotHolder& holder, uint32_t tid) {
  const uint32_t count = view.geometry().slot_count;
  // The word stops near the slot count, because over its lifetime a session may see more
  // threads than 32 bits can count.
  if (IpcAtomics::load_relaxed(view.control().slot_next) < count) {
    const uint32_t next =
        IpcAtomics::fetch_add_relaxed(view.control().slot_next, uint32_t{1});
    if (next < count && lock_slot(view.slot(next), tid)) return next;
  }
  const uint32_t probes = count < kSlotProbesMax ? count : kSlotProbesMax;
  bool ask_soon = probes < count;
  for (uint32_t i = 0; i < probes; ++i, ++holder.probed) {
    const uint64_t steps = uint64_t{holder.probed} * kSlotStep;
    const auto index = static_cast<uint32_t>((tid + steps) % count);
    if (lock_slot(view.slot(index), tid)) return index;
    ask_soon = ask_soon || is_being_reaped(view.slot(index));
  }
  holder.retry = ask_soon ? kRetrySoon : kRetryLate;
  return kNoSlot;
}

void take_over(const BufferView& view, ThreadState& state, const ProcessState& process,
               uint64_t ticks) {
  arctrace_writer_slot& slot = view.slot(state.slot.index);
  DeadSlot<IpcAtomics>::clean_up(view, state.slot.index, [](uint32_t) {});
  // V1 release, matches V2: a reader that finds this owner also finds that its slot was
  // asked for (slot_next).
  IpcAtomics::store_release(slot.writer, state.slot.writer);
  IpcAtomics::store_relaxed(slot.process, process.id);
  IpcAtomics::store_relaxed(slot.pid, process.pid);
  IpcAtomics::store_relaxed(slot.start_ticks, ticks);
  IpcAtomics::store_relaxed(slot.written_before,
                            IpcAtomics::load_relaxed(slot.written) +
                                IpcAtomics::load_relaxed(slot.written_shared));
  // M1 release, matches M2: a reader that finds the tid which the lock holds also finds
  // the rest of the identity.
  IpcAtomics::store_release(slot.tid, state.slot.tid);
  state.slot.distance =
      reinterpret_cast<uintptr_t>(&slot) - reinterpret_cast<uintptr_t>(&state.slot.none);
  for (uint32_t cause = 0; cause < ARCTRACE_LOST_CAUSES; ++cause) {
    state.loss.at_start[cause] = IpcAtomics::load_relaxed(slot.lost[cause]);
    if (state.loss.at_start[cause] != IpcAtomics::load_relaxed(slot.reported[cause])) {
      state.loss.pending = true;
      state.loss.since_ticks = ticks;
    }
  }
}

// Where system calls are forbidden, only threads that libc begins may attach, in this
// process or in one that it forks, and only if the calls that they need are allowed.
bool may_attach() { return may_call_kernel() || may_use_kernel(kThreadUse); }

// Notes the last identities. Of a fork child's threads, only the one that forked has had
// an identity in the parent.
void note_identities(ProcessState& process, uint32_t writer) {
  ThreadLocal& local = thread_local_state;
  if (process.origin == ARCTRACE_ORIGIN_FORK && local.last_process == process.parent_id) {
    IpcAtomics::store_relaxed(process.forker, local.last_writer);
  }
  local.last_writer = writer;
  local.last_process = process.id;
}

void (*thread_attached)();  // null: nobody wants to know

}  // namespace

// Relaxed: another thread may record at the time; it learns of the function or not.
void set_thread_attached(void (*attached)()) {
  __atomic_store_n(&thread_attached, attached, __ATOMIC_RELAXED);
}

ThreadState* attach_thread(uint64_t ticks) {
  if (!may_attach()) return nullptr;
  if (ThreadState* known = thread_local_state.state;
      known != nullptr && known->slot.retry > 0) {
    --known->slot.retry;
    return nullptr;
  }
  ProcessState* process = current_process(ticks);
  if (process == nullptr || !has_next_identity(session.view.control().writer_next)) {
    return nullptr;
  }
  // A handler that jumps out of here would leave locks half-way on the robust list.
  const sys::SignalsBlocked blocked;
  const BufferView& view = session.view;
  const uint32_t tid = thread_id();
  if (tid == 0) return nullptr;
  ThreadState* state = claim_thread_state(thread_local_state.state, tid);
  if (state == nullptr) return nullptr;
  const auto large = static_cast<uintptr_t>(state->calls->large_edges);
  thread_local_state.edges.begin_use(state->edges,
                                     reinterpret_cast<CallEdges::LargeTable*>(large));
  thread_local_state.state = state;
  thread_local_state.leaving = 0;  // in a fork child, it counts its parent's frames
  state->local = &thread_local_state;
  thread_local_state.calls = state->calls;
  thread_local_state.filter_outermost = thread_local_state.filter_context;
  state->slot.index = claim_slot(view, state->slot, tid);
  if (state->slot.index == kNoSlot) return nullptr;
  state->slot.tid = tid;
  // L2 acq_rel, matches L1 and L3: between lock and identity.
  state->slot.writer =
      IpcAtomics::fetch_add_acq_rel(view.control().writer_next, uint32_t{1});
  state->slot.start_ticks = ticks;
  note_identities(*process, state->slot.writer);
  take_over(view, *state, *process, ticks);
  // Threads that begin together, or processes, must not check all slots each.
  uint32_t seen = IpcAtomics::load_relaxed(process->thread_slot);
  if (seen == 0 || !DefinitionsLife<IpcAtomics>::has_older_thread(
                       view, process->id, state->slot.writer, seen)) {
    renew_definitions(*process);
    seen = state->slot.index + 1;
  }
  IpcAtomics::store_relaxed(process->thread_slot, seen);
  state->attached = true;
  emit_definitions(*state, *process);
  if (auto* const attached = __atomic_load_n(&thread_attached, __ATOMIC_RELAXED)) {
    attached();
  }
  return state;
}

}  // namespace arctrace::writer
