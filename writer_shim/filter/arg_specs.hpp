// Whose arguments and results are recorded, and how they are meant.
//
// In the options and in the table of well-known functions a value is four characters: the
// argument's number (0: the result; a: 10), a letter for its kind ('a' + enum
// arctrace_value_kind; S: a std::string), its size in bytes, and how a result says that
// the call failed (enum arctrace_shim_failure).
// A pattern's may be one character instead, kTypedArguments or kTypedResult: as its
// function's types have them.
#pragma once

#include <cstdint>

#include "src/shim_protocol/options.hpp"

namespace arctrace::shim {

// To be called once. The options stay where they are.
void choose_values(const ShimOptions& options);

// Whether any function may have values.
bool have_values();

// The number (of arctrace_shim_set_values) of the values of calls of the function with
// this linker's name; 0: it has none. `place`: of one with a compiled-in hook; null: a
// library's. Not in a hook.
uint32_t values_of(const char* name, const FunctionPlace* place);

}  // namespace arctrace::shim
