// Decides which uses of the kernel (src/os/kernel_use.hpp) a seccomp filter forbids that
// the program is about to install.
#pragma once

#include <linux/filter.h>

#include <cstdint>

namespace arctrace::writer {

// The uses (enum KernelUse) that `filter` forbids; null stands for strict seccomp. 0 if
// the kernel will refuse the filter, as it does when its program can't be read. All uses
// if that can't be checked, or while another thread judges a filter.
uint32_t uses_forbidden_by(const sock_fprog* filter);

}  // namespace arctrace::writer
