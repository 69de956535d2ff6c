// Hooks prctl and syscall: what a thread or a process changes about itself.
#pragma once

namespace arctrace::shim {

// Looks up libc's functions ahead of use.
void find_prctl_functions();

}  // namespace arctrace::shim
