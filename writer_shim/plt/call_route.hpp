// What the stubs' slow path knows of a call.
#pragma once

#include <cstdint>

#include "writer_shim/plt/call_table.hpp"

namespace arctrace::shim {

// The flags (enum arctrace_shim_call_flags) of a call that returns to `return_address`,
// by the live filter too.
uint32_t filtered_flags(LibraryCall& call, uintptr_t return_address);

}  // namespace arctrace::shim
