// The hooks that functions compiled with -finstrument-functions (gcc and clang) call at
// their entry and exit.
#pragma once

namespace arctrace::shim {

// Looks up hooks of the program's own, which come after ours in the search order and go
// on being called.
void find_next_function_hooks();

}  // namespace arctrace::shim
