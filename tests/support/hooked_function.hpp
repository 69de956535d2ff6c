// Functions with the hooks of -finstrument-functions, as the shim calls them.
#pragma once

#include <cstdint>
#include <functional>

namespace arctrace::testing {

// Must be called once in a process that has joined.
void start_hooked_functions();

// Enters a function, calls `body`, and leaves the function. Each `site` is another call
// of the hooks.
void call_hooked(uint64_t key, uint32_t site, const std::function<void()>& body);
void call_hooked(uint64_t key, uint32_t site);

// How many of these entries and exits took the slow path.
uint64_t slow_hook_calls();

}  // namespace arctrace::testing
