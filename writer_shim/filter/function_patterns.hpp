// The user's choice of functions, by their names, modules and sizes.
#pragma once

#include <cstdint>

#include "src/shim_protocol/options.hpp"

namespace arctrace::shim {

// To be called once. The options stay where they are.
void choose_functions(const ShimOptions& options);

// Whether what is recorded at all depends on the function at all.
bool have_function_choice();

// Whether it depends on a function's module or size.
bool choice_needs_place();

// Looks for a demangler among the modules that are loaded now: without one, C++ functions
// are matched by their linker's names only.
void find_demangler();

// Flags for the filter (enum arctrace_shim_call_flags) of the function with this linker's
// name, in the module at `path`; `size` in bytes, 0: not known. It may need memory, and
// call the program's demangler: not in a hook.
uint32_t filter_flags(const char* name, const char* path, uint64_t size);

// The patterns for values that match a function of this linker's name, one bit each. As
// filter_flags.
uint64_t matching_values(const char* name);

}  // namespace arctrace::shim
