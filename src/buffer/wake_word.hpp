// The futex word on which the collector sleeps: 0 while it sleeps or works, 1 from a
// wake-up until its next round begins. A thread that finds the word 1 need not make the
// system call again.
#pragma once

#include <arctrace/format.h>
#include <linux/futex.h>

#include <cstdint>
#include <ctime>

#include "src/base/raw_syscall.hpp"
#include "src/base/shared_atomics.hpp"

namespace arctrace {

inline void wake_collector(arctrace_control& control) {
  // O1 release, matches O2: the stores that the collector is to see.
  if (IpcAtomics::exchange_acq_rel(control.wake, uint32_t{1}) == 0) {
    raw_syscall(SYS_futex, sys::pointer_argument(&control.wake), FUTEX_WAKE, 1);
  }
}

// Waits until wake_collector() is called or `nanoseconds`, less than a second, have
// passed. Returns what the system call did: -EFAULT if the kernel cannot wait on this
// memory.
inline long wait_for_wake(arctrace_control& control, long nanoseconds) {
  const timespec timeout{0, nanoseconds};
  const long result = raw_syscall(SYS_futex, sys::pointer_argument(&control.wake),
                                  FUTEX_WAIT, 0, sys::pointer_argument(&timeout));
  // O2 acquire, matches O1.
  IpcAtomics::exchange_acq_rel(control.wake, uint32_t{0});
  return result;
}

}  // namespace arctrace
