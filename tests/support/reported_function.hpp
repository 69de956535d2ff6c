// Functions that report their exits (src/calls/reported_calls.hpp), as the shim's stubs
// and compiled code call the hooks. On
// x86-64 only: elsewhere there are none.
#pragma once

#include <cstdint>
#include <functional>

namespace arctrace::testing {

// To be called once in a process that has joined.
void start_reported_functions();

// On x86-64. Enters a function, calls `body`, and leaves the function.
void call_reported(uint64_t key, const std::function<void()>& body);

}  // namespace arctrace::testing
