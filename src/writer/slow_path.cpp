#include "src/writer/slow_path.hpp"

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

// Writes what has to precede a thread's record in the chain: definitions, without which
// readers do not know what it means, and the losses that are not reported yet, without
// which it would follow the last record before them as if nothing had been between.
// False: there is no room.
bool prepare_chain(Nesting nesting, ThreadState& state, ProcessState& process,
                   uint64_t ticks) {
  if (is_known_full(state) || !emit_definitions(state, process)) return false;
  return nesting.nested() || !state.loss.pending ||
         report_losses_shared(state, process, ticks);
}

// Takes back the name of a block that is not this call's: a fork child may have left it
// there, which went on with the call of this thread that its parent's handler
// interrupted. While it stands there, the block is not recycled.
void drop_stray_name(ThreadState& state) {
  uint32_t& name = state.slot.slot().active[0];
  if (IpcAtomics::load_relaxed(name) != 0) release_active(&name);
}

}  // namespace

void set_report_waiting_calls(ReportWaitingCalls* report) {
  waiting_calls_reporter = report;
}

ThreadState* attached_thread(Nesting nesting, uint64_t ticks) {
  ThreadState* state = thread_local_state.state;
  if (state != nullptr && state->attached) return state;
  // Attaching twice at once would take two slots: a handler that interrupts it gives up.
  return nesting.nested() ? nullptr : attach_thread(ticks);
}

void attach_this_thread() {
  const WriterCall writer_call;
  if (!session.joined || writer_call.nested() || writer_call.refused()) return;
  attached_thread(writer_call, session_ticks());
}

ThreadState* recording_thread(Nesting nesting, uint64_t ticks) {
  ThreadState* state = attached_thread(nesting, ticks);
  if (state != nullptr) return state;
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
  if (nesting.nested() || !writes_own_blocks(*state, body_size, ticks)) {
    // A record that is too long needs nothing, because it is lost.
    const bool is_too_long =
        ARCTRACE_FULL_HEAD_SIZE + body_size > record_length_max(session.view.geometry());
    if (!is_too_long && !prepare_chain(nesting, *state, *process, ticks)) {
      count_lost(session.view.slot(state->slot.index), *state, ARCTRACE_LOST_FULL, ticks);
      return kNoReservation;
    }
    return reserve_shared(nesting, *state, *process, type, body_size, ticks);
  }
  return reserve_exclusive(*state, *process, type, body_size, ticks);
}

}  // namespace arctrace
