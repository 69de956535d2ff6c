// Functions with exit hooks (src/api/exit_hooked_calls.cpp), as the shim's stubs and
// compiled code call the hooks. They exist on x86-64 only.
#pragma once

#include <cstdint>
#include <functional>

namespace arctrace::testing {

// Must be called once in a process that has joined.
void start_exit_hooked_functions();

// Enters a function, calls `body`, and leaves the function; on x86-64.
void call_exit_hooked(uint64_t key, const std::function<void()>& body);

}  // namespace arctrace::testing
