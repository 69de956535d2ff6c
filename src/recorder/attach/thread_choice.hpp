// Chooses a thread of a process that may run a function for us where it stands, by its
// stack, which libdw unwinds.
#pragma once

#include <absl/status/statusor.h>
#include <elfutils/libdwfl.h>
#include <sys/types.h>

#include <memory>

#include "src/recorder/attach/join_target.hpp"
#include "src/recorder/attach/stopped_thread.hpp"
#include "src/recorder/attach/stopped_threads.hpp"

namespace arctrace::recorder {

// The modules of a process as libdw knows them, to unwind its stacks.
struct EndDwfl {
  void operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }
};
using UnwindModules = std::unique_ptr<Dwfl, EndDwfl>;

// Reads the modules by their own files alone, without separate debug information. Null:
// the process cannot be read.
UnwindModules report_modules(pid_t pid);

// Stops a thread that holds no lock of the loader, of malloc or of libc: one that sleeps
// in a system call, else one that runs, and whose stack has no frame of theirs. All
// others go on. The thread has the priority of `hurried` from then on. Error: no such
// thread was found for 3 s, or none may be stopped.
absl::StatusOr<StoppedThread> stop_harmless_thread(const JoinTarget& target,
                                                   HurriedThread& hurried);

}  // namespace arctrace::recorder
