// posix_spawn: the new program goes on in the session.
#pragma once

namespace arctrace::shim {

void find_spawn_functions();

}  // namespace arctrace::shim
