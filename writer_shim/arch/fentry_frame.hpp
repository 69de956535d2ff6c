// What a call of __fentry__ leaves on the stack (x86_64/fentry_calls.cpp).
#pragma once

#include <cstdint>

namespace arctrace::shim {

// Whether the function whose call of __fentry__ returns to `hook_site` has pushed its
// static chain before the call, so that its return address is one word further up.
bool keeps_static_chain(uintptr_t hook_site);

}  // namespace arctrace::shim
