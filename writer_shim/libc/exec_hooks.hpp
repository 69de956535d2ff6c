// Hooks the exec functions, so that the new program goes on in the session.
#pragma once

namespace arctrace::shim {

// Looks up libc's functions ahead of use, because a vfork child should not.
void find_exec_functions();

}  // namespace arctrace::shim
