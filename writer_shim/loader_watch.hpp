// Notices modules that are loaded and unloaded while the program runs, and has the hooks
// brought up to date. dlopen and dlclose themselves cannot be hooked, because where they
// search depends on their caller.
#pragma once

namespace arctrace::shim {

// Begins to watch. To be called once, after all hooks are in their places, under the
// loader's lock.
void watch_loader();

// Brings the hooks up to date with the modules that are loaded now, of which new ones are
// not hooked. To be called under the loader's lock.
void look_for_modules();

}  // namespace arctrace::shim
