// Keeps which of our system calls the seccomp filters of this process permit.
//
// A filter may answer one of our system calls with a signal or show it to a supervisor,
// so that the program would notice the tracer. Therefore no thread makes system calls for
// a use that a filter forbids. src/process/confinement.hpp judges the filters; a process
// without filters, such as the recorder, may make all calls.
#pragma once

#include <cstdint>

namespace arctrace {

enum KernelUse : uint32_t {
  // All calls that a process makes to join a session and to stay in it. A process for
  // which this is forbidden is called confined.
  kOrdinaryUse = 1,
  // The calls for a thread that libc begins, in a process that has joined or was forked
  // by one that has.
  kThreadUse = 2,
  // Looking whether a program that is about to be executed exists.
  kFileLookUse = 4,
  // Asking whether memory can be read (readable_memory.hpp).
  kMemoryProbeUse = 8,
};
constexpr uint32_t kAllUses = 15;

// Counts each of the `uses` as forbidden once more, or once less.
void forbid_uses(uint32_t uses);
void take_back_forbidden(uint32_t uses);

// Whether all of our system calls are permitted.
bool may_call_kernel();

// Whether the system calls for `use` are permitted.
bool may_use_kernel(KernelUse use);

}  // namespace arctrace
