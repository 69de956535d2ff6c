// Which system calls of ours the seccomp filters of this process permit.
//
// A filter may answer a system call of ours with a signal, or show it to a supervisor:
// then the program would notice us. So a use of the kernel that a filter forbids is not
// made from then on, by any thread. Filters are judged by src/process/confinement.hpp; a
// process that has none may do everything, as the recorder does.
#pragma once

#include <cstdint>

namespace arctrace {

enum KernelUse : uint32_t {
  // Everything that a process does to join a session and to stay in it. A process for
  // which
  // this is forbidden is called confined.
  kOrdinaryUse = 1,
  // What a thread needs that libc begins, in a process that has joined or was forked by
  // one
  // that has.
  kThreadUse = 2,
  // To look whether a program that is to be executed is there.
  kFileLookUse = 4,
  // To ask whether memory can be read (readable_memory.hpp).
  kMemoryProbeUse = 8,
};
constexpr uint32_t kAllUses = 15;

// Counts each of the `uses` as forbidden once more, or once less.
void forbid_uses(uint32_t uses);
void take_back_forbidden(uint32_t uses);

// Whether all system calls of ours are permitted.
bool may_call_kernel();

// Whether those of one use are.
bool may_use_kernel(KernelUse use);

}  // namespace arctrace
