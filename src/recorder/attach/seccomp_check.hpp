// Whether a process that seccomp filters confine can be joined. Its filters are read, and
// each system call of joining and recording is judged by them, so that none is made that
// a filter forbids or answers with a signal.
#pragma once

#include <absl/status/status.h>
#include <sys/types.h>

namespace arctrace::recorder {

// Ok: the filters of all of its threads, if there are any, permit what we do. Error: the
// call that one of them forbids, or why the filters cannot be read. Each thread that has
// a filter is stopped for a moment.
absl::Status check_seccomp(pid_t pid);

}  // namespace arctrace::recorder
