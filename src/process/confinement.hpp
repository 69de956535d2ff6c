// What the seccomp filters of this process leave us to do (src/os/kernel_use.hpp).
//
// Each filter is judged before the kernel gets it, by a walk over its program
// (seccomp_filter.hpp) for each system call that we make.
#pragma once

#include <linux/filter.h>

#include <cstdint>

namespace arctrace {

// The uses (enum KernelUse) that `filter` forbids; null stands for strict seccomp. Also 0
// if the kernel will refuse the filter, or if its program can't be read.
uint32_t uses_forbidden_by(const sock_fprog* filter);

}  // namespace arctrace
