// Entry and exit of functions compiled with -finstrument-functions (gcc and clang).
#pragma once

namespace arctrace::shim {

// Hooks of the program's own that stand behind ours in the search order go on being
// called.
void find_next_function_hooks();

}  // namespace arctrace::shim
