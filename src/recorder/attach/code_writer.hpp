// Changes the code of a process while none of its threads runs, and while no return
// address on their stacks is in the bytes that change.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>
#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "src/recorder/attach/stopped_thread.hpp"
#include "src/recorder/attach/stopped_threads.hpp"
#include "src/shim_protocol/joining.hpp"

namespace arctrace::recorder {

// Reads stacks of a process whose threads stand still.
class StackWords {
 public:
  explicit StackWords(pid_t pid);

  // Calls visit(word) for each aligned word on the stack of a thread with this stack
  // pointer, and in the red zone below. Where the thread runs signal handlers, the
  // addresses at which it was interrupted are among them, also on other stacks. Words of
  // another use, and remains of calls that have returned, are visited as well. A stack is
  // read up to 64 MiB.
  void visit(uint64_t stack_pointer, absl::FunctionRef<void(uint64_t)> visit) const;

 private:
  struct Memory {
    uint64_t low;
    uint64_t high;
  };
  // Visits one stack, but not the stacks for which it calls interrupted(stack_pointer).
  void visit_stack(uint64_t stack_pointer, absl::FunctionRef<void(uint64_t)> visit,
                   absl::FunctionRef<void(uint64_t)> interrupted) const;
  bool read(uint64_t address, void* to, uint64_t size) const;

  pid_t pid_;
  std::vector<Memory> writable_;  // ascending
};

// The numbers of changes that were not made.
struct SkippedChanges {
  // A thread stands in the changed bytes, or may go on there after a signal handler.
  uint64_t in_use = 0;
  // The changed bytes cross a page boundary, or other bytes are there.
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

  // Makes the changes, except for those that are skipped, which can be tried again. If
  // the recorder is killed meanwhile, each change is made as a whole or not at all.
  // Error: none was made, because a thread cannot be stopped at present, or the process'
  // memory cannot be written. `hurried`: for threads that stand in the bytes. REQUIRES:
  // `others` are all threads of the process but the borrowed one.
  absl::StatusOr<SkippedChanges> write(StoppedThreads& others,
                                       HurriedThread& hurried) const;

 private:
  absl::StatusOr<std::vector<shim::CodeChange>> read_changes() const;
  uint64_t leave_used(const StoppedThreads& others,
                      std::vector<shim::CodeChange>& changes) const;

  pid_t pid_;
  uint64_t list_;
  const StoppedThread& borrowed_;
};

}  // namespace arctrace::recorder
