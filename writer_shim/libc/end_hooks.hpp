// Records the end of the process by exit(), return from main, or _exit().
#pragma once

namespace arctrace::shim {

// Has libc call us at exit() and return from main. To be called once.
void watch_exit();

}  // namespace arctrace::shim
