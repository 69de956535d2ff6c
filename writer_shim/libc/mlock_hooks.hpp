// Hooks mlockall, which a limit on locked memory may forbid because of what is mapped for
// arctrace.
#pragma once

namespace arctrace::shim {

// Looks up libc's function, before a program calls it where that can't be done.
void find_mlockall();

}  // namespace arctrace::shim
