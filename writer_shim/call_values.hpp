// Whose arguments and results are recorded, and how they are meant.
//
// In the options and in the table of well-known functions a value is four characters: the
// argument's number (0: the result), a letter for its kind ('a' + enum
// arctrace_value_kind), its size in bytes, and how a result says that the call failed
// (enum arctrace_shim_failure).
#pragma once

#include <cstdint>

#include "writer_shim/shim_options.hpp"

namespace arctrace::shim {

// To be called once. The options stay where they are.
void choose_values(const ShimOptions& options);

// Whether any function may have values.
bool have_values();

enum class Callee : uint8_t { kOfLibrary, kWithHook };

// The number (of arctrace_shim_set_values) of the values of calls of the function with
// this linker's name; 0: it has none. What is well-known is so of libraries. Not in a
// hook.
uint32_t values_of(const char* name, Callee callee);

}  // namespace arctrace::shim
