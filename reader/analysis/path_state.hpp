// What a thread did in a stretch of its time: the states of the critical path, and of the
// causes of slow calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "reader/replay/replay.hpp"

namespace arctrace::reader {

enum class PathState : uint8_t {
  kRunning,
  kPreempted,  // it could have run, and had no CPU
  kDisk,
  kTimer,
  kNetwork,
  kThread,     // another thread ended the wait; the critical path goes on there instead
  kAmbiguous,  // an interrupt ended the wait, of which is not known for what it came
  kNotKnown,   // what ended the wait, or what the thread did, is not in the trace
};
inline constexpr size_t kPathStates = static_cast<size_t>(PathState::kNotKnown) + 1;

// "running", "preempted", ... "not known"
std::string_view path_state_name(PathState state);

// A thread ended a wait itself, and not an interrupt that came upon it.
bool is_woken_by_thread(const Waker& waker);

// What a thread waited for that no thread gave it. `state` is a stretch in which it was
// blocked, `node` its innermost shown frame then.
PathState wait_state(const Replay& replay, const StateInfo& state, NodeIndex node);

}  // namespace arctrace::reader
