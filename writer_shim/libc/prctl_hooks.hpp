// prctl and syscall: what a thread or process changes about itself.
#pragma once

namespace arctrace::shim {

void find_prctl_functions();

}  // namespace arctrace::shim
