// The filter that `arctrace ctl -F` and `-N` set while the session runs. Each hook looks
// up its own function at its first call after a change, so no thread is stopped, no lock
// or system call is needed, and the number of hooks is not limited. Also the text of the
// filter with which the process was started.
#pragma once

#include <cstdint>

#include "src/protocol/live_filter.hpp"
#include "src/shim_protocol/options.hpp"

namespace arctrace::shim {

// The word with the generation of the live filter that is in force.
extern const volatile uint32_t* live_filter_generation_word;

// To be called once, in a process that has joined. `filter_in_only`: as in
// arctrace_shim_filter by the options, for the time after the live filter is removed.
void start_live_filter(bool filter_in_only);

// The generation of the live filter in force, which changes whenever it does; 0: none was
// set.
inline uint32_t live_filter_generation() { return *live_filter_generation_word; }

// Applies the live filter to a function's flags (enum arctrace_shim_call_flags), by its
// linker's name; `at_start`: its flags by the options. `generation`: the generation of
// the filter that `flags` are by. False: the filter is being changed, and the next call
// may try again. Takes microseconds; may be called in a hook.
bool apply_live_filter(const char* name, uint32_t at_start, uint32_t& flags,
                       uint32_t& generation);

// The filter of calls as a text, as the trace has it (SPEC.md REC-13).
struct FilterText {
  char bytes[kCallFilterTextMax];
  uint32_t size = 0;
};

// Sets `text`, which is new, to the filter of these options: empty if no call is filtered
// out. Uses neither libc nor memory.
void write_filter_text(const ShimOptions& options, FilterText& text);

}  // namespace arctrace::shim
