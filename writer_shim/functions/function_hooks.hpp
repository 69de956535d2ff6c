// The slow path of the hooks that functions compiled with -finstrument-functions (gcc and
// clang) call at their entry and exit (writer_shim/arch/function_hooks.h).
#pragma once

namespace arctrace::shim {

// Lets the hooks take the fast path, unless the program has hooks of its own, which come
// after ours in the search order and go on being called. To be called once, after the
// shim has been relocated.
void start_function_hooks();

}  // namespace arctrace::shim
