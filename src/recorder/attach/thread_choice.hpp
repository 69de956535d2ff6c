// Chooses a thread of a process that may run a function for us where it stands.
#pragma once

#include <absl/status/statusor.h>

#include "src/recorder/attach/join_target.hpp"
#include "src/recorder/attach/priorities.hpp"
#include "src/recorder/attach/stopped_thread.hpp"

namespace arctrace {

// Stops a thread that holds no lock of the loader, of malloc or of libc: one that sleeps
// in a system call, else one that runs, and whose stack has no frame of theirs. All
// others go on. It has the priority of `hurried` from then on. Error: there was none for
// 3 s, or none may be stopped.
absl::StatusOr<StoppedThread> stop_harmless_thread(const JoinTarget& target,
                                                   HurriedThread& hurried);

}  // namespace arctrace
