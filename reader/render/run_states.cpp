#include "reader/render/run_states.hpp"

#include <arctrace/format.h>

namespace arctrace::reader {

const char* run_state_text(const StateInfo& state) {
  if (state.state == RunState::kNotKnown) return "not known";
  if (state.state == RunState::kRunning) return "running";
  if (state.state == RunState::kReady) {
    if (state.interrupted) return "ready: interrupted";
    return state.preempted ? "ready: preempted" : "ready: woken";
  }
  // The kernel's TASK_* bits.
  if (state.task_state == ARCTRACE_SWITCH_UNKNOWN) return "blocked";
  if ((state.task_state & ARCTRACE_SWITCH_IO) != 0) return "blocked: waits for a disk";
  if ((state.task_state & 1) != 0) return "blocked: sleeps";
  if ((state.task_state & 2) != 0) return "blocked: sleeps uninterruptibly";
  if ((state.task_state & 4) != 0) return "blocked: stopped";
  if ((state.task_state & 8) != 0) return "blocked: traced";
  return "blocked: gone";
}

}  // namespace arctrace::reader
