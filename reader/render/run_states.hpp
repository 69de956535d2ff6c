// The words for what a thread does when it runs and when it does not, alike in all
// outputs.
#pragma once

#include "reader/replay/schedule_listener.hpp"

namespace arctrace::reader {

// "running", "ready: preempted", "ready: interrupted", "ready: woken", "blocked: sleeps",
// "blocked: stopped", "not known".
const char* run_state_text(const StateInfo& state);

}  // namespace arctrace::reader
