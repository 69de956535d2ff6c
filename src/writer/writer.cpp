#include "src/writer/writer.hpp"

#include "src/writer/claim_slot.hpp"
#include "src/writer/definitions.hpp"
#include "src/writer/exclusive_records.hpp"
#include "src/writer/loss.hpp"
#include "src/writer/opening_records.hpp"
#include "src/writer/shared_records.hpp"

namespace arctrace {

thread_local constinit ThreadLocal thread_local_state{};

ThreadState* attached_thread(ScopeKind scope, uint64_t ticks) {
  ThreadState* state = scope.local().state;
  if (state != nullptr && state->attached) return state;
  // Attaching twice at once would take two slots: a handler that interrupts it gives up.
  return scope.nested() ? nullptr : attach_thread(scope, ticks);
}

void attach_this_thread() {
  const WriteScope scope;
  if (!session.joined || scope.nested() || scope.refused()) return;
  attached_thread(scope, session_ticks());
}

ThreadState* recording_thread(ScopeKind scope, uint64_t ticks) {
  ThreadState* state = attached_thread(scope, ticks);
  if (state == nullptr) {
    count_lost_without_slot(session.view.control(), scope.nested()
                                                        ? ARCTRACE_LOST_NESTED
                                                        : ARCTRACE_LOST_NO_SLOT);
  }
  return state;
}

Reservation reserve_slow(ScopeKind scope, uint16_t type, uint32_t body_size,
                         uint64_t ticks) {
  if (!session.joined || scope.refused()) return kNoReservation;
  ThreadState* state = recording_thread(scope, ticks);
  if (state == nullptr) return kNoReservation;
  ProcessState* process = current_process(ticks);
  if (process == nullptr) return kNoReservation;
  if (state->first_waiting != 0 && !scope.nested()) tell_all_calls(scope, *state);
  if (scope.nested() || session.view.geometry().scope == ARCTRACE_SCOPE_SHARED) {
    if (!is_known_full(*state)) {
      if (state->loss_pending && !scope.nested()) {
        tell_losses_shared(scope, *state, *process, ticks);
      }
      if (!emit_definitions(scope, *state, *process)) {
        count_lost(session.view.slot(state->slot), *state, ARCTRACE_LOST_FULL, ticks);
        return kNoReservation;
      }
    }
    return reserve_shared(scope, *state, *process, type, body_size, ticks);
  }
  return reserve_exclusive(scope, *state, *process, type, body_size, ticks);
}

}  // namespace arctrace
