// The words on the stacks of stopped threads.
#pragma once

#include <absl/functional/function_ref.h>
#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace arctrace {

// Reads stacks of a process whose threads stand still.
class StackWords {
 public:
  explicit StackWords(pid_t pid);

  // Calls visit(word) for each aligned word that is on the stack of a thread with this
  // stack pointer, or below it by the red zone. The places where a thread that runs
  // signal handlers was interrupted are among them, also on other stacks. Words of
  // another use, and remains of calls that have returned, are visited as well. A stack is
  // read up to 64 MiB.
  void visit(uint64_t stack_pointer, absl::FunctionRef<void(uint64_t)> visit) const;

 private:
  struct Memory {
    uint64_t low;
    uint64_t high;
  };
  // One stack, without those that interrupted(stack_pointer) is called with.
  void visit_stack(uint64_t stack_pointer, absl::FunctionRef<void(uint64_t)> visit,
                   absl::FunctionRef<void(uint64_t)> interrupted) const;
  bool read(uint64_t address, void* to, uint64_t size) const;

  pid_t pid_;
  std::vector<Memory> writable_;  // ascending
};

}  // namespace arctrace
