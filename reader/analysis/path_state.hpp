// Paths of calls in the tree of a thread, and what a thread did on them: the states of
// the critical path, and of the causes of slow calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "reader/replay/replay.hpp"

namespace arctrace::reader {

// The functions on the path to a node, innermost first, without the kernel's.
std::vector<FunctionId> path_of(const Replay& replay, NodeIndex node);

// The CPU time of a thread without the start of its program: the loader's work and the
// like stand in frames that the reader makes up.
uint64_t cpu_after_start(const Replay& replay, NodeIndex root);

// The node at the end of a path, which is innermost first, below a root; kNoNode: none.
NodeIndex find_path(const CallTree& tree, NodeIndex root,
                    const std::vector<FunctionId>& path);

// What a thread did in a stretch of its time: the states of the critical path, and of the
// causes of slow calls.
enum class PathState : uint8_t {
  kRunning,
  kPreempted,  // it could have run, and had no CPU
  kDisk,
  kTimer,
  kNetwork,
  kThread,     // another thread ended the wait; the critical path goes on there instead
  kAmbiguous,  // an interrupt of unknown purpose, or a fault, ended the wait
  kRecorder,   // the tracer worked in the thread, as to patch functions
  kNotKnown,   // what ended the wait, or what the thread did, is not in the trace
};
inline constexpr size_t kPathStates = static_cast<size_t>(PathState::kNotKnown) + 1;

// "running", "preempted", ... "arctrace", "not known"
std::string_view path_state_name(PathState state);

// Whether a thread itself ended a wait, and not an interrupt that came upon it.
bool is_woken_by_thread(const Waker& waker);

// Whether what interrupted the waker, and ended a wait, may have been a fault of its own,
// such as the one for which a signal kills its process: on x86-64 records do not tell an
// interrupt of user mode from that, unless it was a timer's or a soft one.
bool may_be_fault(const Replay& replay, const Waker& waker);

// Returns the state of a wait that no thread ended. `state` is a stretch in which the
// thread was blocked, `node` its innermost shown frame then.
PathState wait_state(const Replay& replay, const StateInfo& state, NodeIndex node);

}  // namespace arctrace::reader
