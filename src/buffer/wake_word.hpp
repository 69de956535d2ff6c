// The word at which the collector sleeps, a futex: 0 while it sleeps or works, 1 from a
// wake-up until it looks around again. Whoever finds it raised need not call the kernel.
#pragma once

#include <arctrace/format.h>
#include <linux/futex.h>

#include <cstdint>
#include <ctime>

#include "src/base/raw_syscall.hpp"
#include "src/base/shared_atomics.hpp"

namespace arctrace {

inline void wake_collector(arctrace_control& control) {
  // O1 release, matches O2: what the collector is to find.
  if (IpcAtomics::exchange_acq_rel(control.wake, uint32_t{1}) == 0) {
    raw_syscall(SYS_futex, sys::pointer_argument(&control.wake), FUTEX_WAKE, 1);
  }
}

// Until somebody wakes the collector, or `nanoseconds` (below a second) have passed.
inline void wait_for_wake(arctrace_control& control, long nanoseconds) {
  const timespec timeout{0, nanoseconds};
  raw_syscall(SYS_futex, sys::pointer_argument(&control.wake), FUTEX_WAIT, 0,
              sys::pointer_argument(&timeout));
  // O2 acquire, matches O1.
  IpcAtomics::exchange_acq_rel(control.wake, uint32_t{0});
}

}  // namespace arctrace
