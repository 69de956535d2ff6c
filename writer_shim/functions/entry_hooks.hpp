// The hooks that -pg and -mfentry have a function call at its entry (mcount, __fentry__):
// the function's return address is exchanged for ours, as for a library call that is
// called through, and its exit recorded when it returns there.
#pragma once

namespace arctrace::shim {

// Code was loaded or unloaded: where functions begin may have changed.
void forget_entry_hooks();

}  // namespace arctrace::shim
