// Notices modules that are loaded and unloaded while the program runs, and has the hooks
// brought up to date. dlopen and dlclose themselves cannot be hooked, because where they
// search depends on their caller.
#pragma once

namespace arctrace::shim {

// Begins to watch. To be called once, after all hooks are in their places. `is_loading`:
// the loader's lock is held, so that its code can be changed. Otherwise the calls of
// modules that come later are not recorded.
void watch_loader(bool is_loading);

// Brings the hooks up to date with the modules that are loaded now. For a shim that does
// not have the loader call it, between two sessions.
void look_for_modules();

}  // namespace arctrace::shim
