// Matches functions against the user's patterns, by their names, modules and sizes, and
// finds the flags that the filter has for them.
#pragma once

#include <cstdint>

#include "src/shim_protocol/options.hpp"

namespace arctrace::shim {

// Sets the patterns, in place of any earlier ones. The options must stay where they are.
void set_patterns(const ShimOptions& options);

// Whether the options filter at all, or set other flags of functions.
bool filters_functions();

// Whether filter_flags() needs the function's module or size.
bool filter_needs_module();

// Searches for a demangler among the modules that are loaded now. Without one, C++
// functions match by their linker's names only.
void find_demangler();

// The filter's flags (enum arctrace_shim_call_flags) for the function with this linker's
// name in the module at `path`; `size` in bytes, 0 if it is not known. May allocate and
// call the program's demangler, so it must not be called in a hook.
uint32_t filter_flags(const char* name, const char* path, uint64_t size);

// The filter's flags for a frame that the program names itself, by that name; may
// allocate.
uint32_t named_frame_flags(const char* name);

// The result of filter_flags() without noting which patterns have matched: the function
// may never be recorded.
struct FilterMatch {
  uint32_t flags;
  uint64_t patterns;  // the matching ones, one bit each
};
FilterMatch match_filter(const char* name, const char* path, uint64_t size);

// The flags of a function of which only the size is known (0: not even that); may be
// called in a hook.
uint32_t filter_flags_by_size(uint64_t size);

// Whether no function of the module at `path` is recorded.
bool is_module_filtered_out(const char* path);

// The patterns of the kinds kArgs and kWhen, one bit each, that a function with this
// linker's name matches. Like filter_flags(), not to be called in a hook.
uint64_t matching_arg_patterns(const char* name);

// Finds which arguments and return values of a function's calls are recorded: by the
// table of auto-args, by types that the command has read, and by the user's patterns, of
// which later ones have precedence; and the locks, if the arguments are not recorded.

// Sets the options, in place of any earlier ones, whose numbers are no longer valid. The
// options must stay where they are.
void set_arg_options(const ShimOptions& options);

// Whether the options ask for arguments or return values of any function.
bool records_args();

// The number, for arctrace_shim_call_begin_with_args(), of the values that are recorded
// of calls of the function with this linker's name; 0: none. `at`: the address of a
// function with a compiled-in hook; null: the function is a library's. Not to be called
// in a hook.
uint32_t arg_specs_of(const char* name, const FileAddress* at);

// How many locks are recorded of calls with this number; 0 if other values are.
uint32_t count_only_locks(uint32_t number);

}  // namespace arctrace::shim
