// Hooks posix_spawn, so that the new program goes on in the session.
#pragma once

namespace arctrace::shim {

// Looks up libc's functions ahead of use.
void find_spawn_functions();

}  // namespace arctrace::shim
