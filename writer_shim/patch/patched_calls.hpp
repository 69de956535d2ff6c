// The callers of patched functions (writer_shim/arch/patched_calls.h).
#pragma once

namespace arctrace::shim {

// To be called when code was loaded or unloaded: callers may be elsewhere.
void forget_patched_callers();

}  // namespace arctrace::shim
