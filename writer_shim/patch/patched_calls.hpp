// The callers of patched functions (writer_shim/arch/patched_calls.h).
#pragma once

#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

// Calls from this code, the shim's, are not recorded. To be called before there are any.
void know_own_code(AddressRange code);

// To be called when code was loaded or unloaded: callers may be elsewhere.
void forget_patched_callers();

}  // namespace arctrace::shim
