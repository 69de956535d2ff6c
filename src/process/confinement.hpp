// Decides which uses of the kernel (src/os/kernel_use.hpp) a seccomp filter forbids. The
// shim asks before a program installs a filter; the filter's program is walked
// (seccomp_filter.hpp) once for each system call that we make.
#pragma once

#include <linux/filter.h>

#include <cstdint>

namespace arctrace {

// The uses (enum KernelUse) that `filter` forbids; null stands for strict seccomp. 0 if
// the kernel will refuse the filter, as it does when its program can't be read. All uses
// if that can't be checked, or while another thread judges a filter.
uint32_t uses_forbidden_by(const sock_fprog* filter);

}  // namespace arctrace
