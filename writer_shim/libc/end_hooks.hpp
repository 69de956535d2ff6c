// Records the end of the process by exit(), return from main, or _exit().
#pragma once

namespace arctrace::shim {

// Finds the _exit() and _Exit() that stand after ours. To be called before they may be
// called where no lock of the loader may be taken; until then ours end the process.
void find_exit_functions();

// Has libc call us at exit() and return from main. To be called once.
void watch_exit();

}  // namespace arctrace::shim
