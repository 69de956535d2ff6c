// Notices modules that are loaded and unloaded while the program runs, and has the hooks
// brought up to date. dlopen and dlclose themselves cannot be hooked, because where they
// search depends on their caller.
#pragma once

namespace arctrace::shim {

// Begins to watch. To be called once, after all hooks are in their places.
void watch_loader();

}  // namespace arctrace::shim
