// libunwind takes a frame's canonical address for the stack pointer of its caller. So
// that it finds the callers of our frames, these are two for all unwinders of a process
// that has libunwind (writer_shim/arch/x86_64/call_stubs.S).
#pragma once

namespace arctrace::shim {

// Looks at the path of a module that is loaded, before any of its functions runs.
void look_for_libunwind(const char* path);

}  // namespace arctrace::shim
