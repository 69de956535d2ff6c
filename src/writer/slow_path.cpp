#include "src/writer/slow_path.hpp"

#include "src/base/raw_syscall.hpp"
#include "src/os/kernel_use.hpp"
#include "src/process/process_identity.hpp"
#include "src/process/session.hpp"
#include "src/writer/adaptive_scope.hpp"
#include "src/writer/claim_slot.hpp"
#include "src/writer/definitions.hpp"
#include "src/writer/exclusive_records.hpp"
#include "src/writer/loss.hpp"
#include "src/writer/opening_records.hpp"
#include "src/writer/shared_records.hpp"

namespace arctrace {

namespace {

ReportWaitingCalls* waiting_calls_reporter;  // null: no call ever waits
bool has_vfork_children;  // when the session was joined, that no hook saw begin

// Whether a vfork child runs here, with the storage of a thread that has no slot in the
// session. A slot would be the child's, and free when that ends, while the thread goes on
// with it.
bool runs_in_vfork_child() {
  if (thread_local_state.is_vforking) return true;
  const uint32_t pid = known_pid();
  return has_vfork_children && pid != 0 && may_call_kernel() && sys::getpid() != pid;
}

// Writes what has to precede a thread's record in the chain: definitions, without which
// readers do not know what it means, and the losses that are not reported yet, without
// which it would follow the last record before them as if nothing had been between.
// `moment` becomes the record's. False: there is no room.
bool prepare_chain(Nesting nesting, ThreadState& state, ProcessState& process,
                   FramesMoment& moment) {
  if (is_known_full(state)) return false;
  arctrace_control& control = session.view.control();
  const uint64_t freed = IpcAtomics::load_relaxed(control.freed);
  const uint64_t chain = IpcAtomics::load_relaxed(control.shared_current);
  if (!emit_definitions(state, process)) {
    note_no_block(state, freed);
    state.loss.full_chain = chain;
    return false;
  }
  const bool has_lost = state.loss.pending || state.loss.stack_differs;
  return nesting.nested() || !has_lost || begin_in_chain(state, process, moment);
}

// Reserves in the shared chain, after what has to precede the record there.
Reservation reserve_in_chain(Nesting nesting, ThreadState& state, ProcessState& process,
                             uint16_t type, uint32_t body_size, uint64_t ticks) {
  // A record that is too long needs nothing, because it is lost.
  const bool is_too_long =
      ARCTRACE_FULL_HEAD_SIZE + body_size > record_length_max(session.view.geometry());
  FramesMoment moment{ticks, 0};
  if (!nesting.nested()) moment = frames_moment(state, ticks);
  if (!is_too_long && !prepare_chain(nesting, state, process, moment)) {
    count_lost(session.view.slot(state.slot.index), state, ARCTRACE_LOST_FULL, ticks);
    return kNoReservation;
  }
  // What the call writes with its own time, too, is not to precede what stands here.
  if (moment.ticks != ticks) state.chain.not_before = moment.ticks;
  return reserve_shared(nesting, state, process, type, body_size, moment);
}

// Takes back the name of a block that is not this call's: a fork child may have left it
// there, which went on with the call of this thread that its parent's handler
// interrupted. While it stands there, the block is not recycled.
void drop_stray_name(ThreadState& state) {
  uint32_t& name = state.slot.slot().active[0];
  if (IpcAtomics::load_relaxed(name) != 0) release_active(&name);
}

}  // namespace

void expect_vfork_children() { has_vfork_children = true; }

void set_report_waiting_calls(ReportWaitingCalls* report) {
  waiting_calls_reporter = report;
}

ThreadState* attached_thread(Nesting nesting, uint64_t ticks) {
  ThreadState* state = thread_local_state.state;
  if (state != nullptr && state->attached) return state;
  // Attaching twice at once would take two slots: a handler that interrupts it gives up.
  return nesting.nested() || runs_in_vfork_child() ? nullptr : attach_thread(ticks);
}

void attach_this_thread() {
  const WriterCall writer_call;
  if (!session.joined || writer_call.nested() || writer_call.refused()) return;
  attached_thread(writer_call, session_ticks());
}

ThreadState* recording_thread(Nesting nesting, uint64_t ticks) {
  ThreadState* state = attached_thread(nesting, ticks);
  if (state != nullptr) return state;
  if (runs_in_vfork_child()) return nullptr;
  arctrace_control& control = session.view.control();
  arctrace_loss_cause cause = ARCTRACE_LOST_NO_SLOT;
  if (nesting.nested()) {
    cause = ARCTRACE_LOST_NESTED;
  } else if (!has_next_identity(control.process_next) ||
             !has_next_identity(control.writer_next)) {
    cause = ARCTRACE_LOST_IDENTITY;
  }
  count_lost_without_slot(control, cause);
  return nullptr;
}

Reservation reserve_slow(Nesting nesting, uint16_t type, uint32_t body_size,
                         uint64_t ticks) {
  if (!session.joined || nesting.refused()) return kNoReservation;
  ThreadState* state = recording_thread(nesting, ticks);
  if (state == nullptr) return kNoReservation;
  ProcessState* process = current_process(ticks);
  if (process == nullptr) return kNoReservation;
  if (!nesting.nested()) drop_stray_name(*state);
  if (nesting.nested() && state->loss.stack_differs) {
    count_lost(session.view.slot(state->slot.index), *state, ARCTRACE_LOST_FULL, ticks);
    return kNoReservation;
  }
  if (state->filtered.first_waiting != 0 && !nesting.nested())
    waiting_calls_reporter(nesting, *state);
  const bool differs = state->loss.stack_differs;
  if (nesting.nested() || !writes_own_blocks(*state, body_size, ticks)) {
    const Reservation record =
        reserve_in_chain(nesting, *state, *process, type, body_size, ticks);
    // There was no room for the STACK.
    if (differs && state->chain.block == 0) state->loss.stack_differs = true;
    return record;
  }
  return reserve_exclusive(*state, *process, type, body_size, ticks);
}

}  // namespace arctrace
