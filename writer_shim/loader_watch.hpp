// Notices modules that are loaded and unloaded while the program runs.
#pragma once

namespace arctrace::shim {

// Begins to watch: the loader calls a function of its own, empty and there for debuggers
// (r_debug.r_brk), whenever its list of modules begins to change and when it is
// consistent again; that function is made to jump to ours. dlopen and dlclose themselves
// can't be hooked: who calls them decides where they search.
void watch_loader();

// Where the jump could not be made: compares the loader's counters. To be called when
// code runs that was never seen.
void check_modules();

}  // namespace arctrace::shim
