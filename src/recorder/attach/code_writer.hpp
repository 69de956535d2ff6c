// Changes the code of a process while none of its threads runs.
#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "src/recorder/attach/priorities.hpp"
#include "src/recorder/attach/stopped_thread.hpp"
#include "src/recorder/attach/stopped_threads.hpp"
#include "src/shim_protocol/code_changes.hpp"

namespace arctrace {

// Changes that were not made.
struct LeftChanges {
  // A thread stands in their bytes, or may go on there after a signal handler.
  uint64_t in_use = 0;
  // Their bytes lie across two pages, or something else stands there.
  uint64_t for_good = 0;
};

class CodeWriter {
 public:
  // `list`: the address of the shim's CodeChanges. `borrowed`: the thread that runs
  // functions for us.
  CodeWriter(pid_t pid, uint64_t list, const StoppedThread& borrowed)
      : pid_(pid), list_(list), borrowed_(borrowed) {}

  // Whether there is anything to be changed. Error: the process has ended.
  absl::StatusOr<bool> has_changes() const;

  // Makes the changes, but for those that are left, which can be tried again. If we are
  // killed meanwhile, each change is made or not. Error: none was made, because a thread
  // cannot be stopped at present, or the process' memory cannot be written.
  // `hurried`: for those that stand in the bytes. REQUIRES: `others` are all threads of
  // the process but the borrowed one.
  absl::StatusOr<LeftChanges> write(StoppedThreads& others, HurriedThread& hurried) const;

 private:
  absl::StatusOr<std::vector<shim::CodeChange>> read_changes() const;
  uint64_t leave_used(const StoppedThreads& others,
                      std::vector<shim::CodeChange>& changes) const;

  pid_t pid_;
  uint64_t list_;
  const StoppedThread& borrowed_;
};

}  // namespace arctrace
