// The process' end, by exit(), return from main, or _exit.
#pragma once

namespace arctrace::shim {

// exit() and return from main: has libc tell the status.
void watch_exit();

}  // namespace arctrace::shim
