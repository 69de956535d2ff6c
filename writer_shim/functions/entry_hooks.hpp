// The hooks that functions compiled with -pg and -mfentry call at their entry (mcount,
// __fentry__). The function's return address is exchanged for ours, to which a library
// call that is called through returns too, and its exit is recorded when it returns
// there.
#pragma once

namespace arctrace::shim {

// To be called when code was loaded or unloaded: functions may begin elsewhere.
void forget_entry_hooks();

}  // namespace arctrace::shim
