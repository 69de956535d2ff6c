// What the seccomp filters of this process leave us to do.
//
// A system call of ours that a filter answers with a signal, or that its supervisor sees,
// would not be ours alone any more. So each filter is judged before the kernel gets it
// (src/process/seccomp_filter.hpp), and what it forbids is not done from then on, by any
// thread.
#pragma once

#include <linux/filter.h>

#include <cstdint>

namespace arctrace {

enum KernelUse : uint32_t {
  // All that a process does that joins or has joined; whoever else it executes, too.
  kOrdinaryUse = 1,
  // What a thread needs that libc begins, in a process that has joined or was forked by
  // it.
  kThreadUse = 2,
  // Whether a program that is to be executed is there.
  kFileLookUse = 4,
  // Whether memory can be read (src/os/readable_memory.hpp), a filter's program among
  // others.
  kMemoryProbeUse = 8,
};
constexpr uint32_t kAllUses = 15;

// The uses that `filter` forbids; null: strict seccomp. 0 too if the kernel will refuse
// it, or if it can't be read.
uint32_t uses_forbidden_by(const sock_fprog* filter);

// Each as often as it was forbidden, and not taken back.
void forbid_uses(uint32_t uses);
void take_back_forbidden(uint32_t uses);

// Whether system calls of ours are allowed; if not: those of one use.
bool may_call_kernel();
bool may_use_kernel(KernelUse use);

}  // namespace arctrace
