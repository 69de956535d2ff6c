// The filter that `arctrace ctl -F` and `-N` set while the session runs. Each hook looks
// up its own function at its first call after a change, so that nothing has to be
// stopped, locked or asked of the kernel, and the number of hooks is not limited.
#pragma once

#include <cstdint>

namespace arctrace::shim {

// The word that holds the round of the live filter that is in force.
extern const volatile uint32_t* live_filter_round_word;

// To be called once, in a process that has joined. `filter_in_only`: as
// arctrace_shim_filter has it from the options, for when the live filter is taken back.
void start_live_filter(bool filter_in_only);

// The round of the live filter in force, which changes whenever it does; 0: none was set.
inline uint32_t live_filter_round() { return *live_filter_round_word; }

// What the live filter makes of a function's flags (enum arctrace_shim_call_flags), by
// its linker's name; `at_start`: its flags by the options. `round`: of the filter that
// `flags` are by. False: it is being changed, and the next call may ask again. Takes
// microseconds; may be called in a hook.
bool apply_live_filter(const char* name, uint32_t at_start, uint32_t& flags,
                       uint32_t& round);

}  // namespace arctrace::shim
