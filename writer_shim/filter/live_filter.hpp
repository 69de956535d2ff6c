// Which functions are recorded, as `arctrace ctl` chose while the session runs. Each hook
// asks for its own function, at its first call behind a change: so nothing is to be
// stopped, locked or asked of the kernel, and there is no limit to the number of hooks.
#pragma once

#include <cstdint>

namespace arctrace::shim {

// Where the number of the choice in force stands.
extern const volatile uint32_t* live_round_place;

// To be called once, in a process that has joined. `only_chosen`: at the start nothing is
// recorded but chosen functions and what they call.
void start_live_choice(bool only_chosen);

// The number of the choice in force, to be compared; 0: there was none yet.
inline uint32_t live_round() { return *live_round_place; }

// What a function's flags for the filter (enum arctrace_shim_call_flags) become, by its
// linker's name; `at_start`: what they were when it was hooked. `round`: of the choice
// that they are for. False: it is being changed, the next call may ask again.
bool choose_live(const char* name, uint32_t at_start, uint32_t& flags, uint32_t& round);

}  // namespace arctrace::shim
