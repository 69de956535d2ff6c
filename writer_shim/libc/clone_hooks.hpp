// Hooks clone, which may make a task that has no thread-local storage of its own.
#pragma once

namespace arctrace::shim {

// Looks up libc's function, before a program calls it where that can't be done.
void find_clone();

}  // namespace arctrace::shim
