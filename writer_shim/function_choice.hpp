// What the user chose of the functions with compiled-in hooks, by their addresses: from
// the symbol tables of their modules' files.
#pragma once

#include <cstdint>

namespace arctrace::shim {

// Reads the files of modules that were not read yet. To be called when the loader's list
// of modules has changed.
void read_function_choice();

// Flags for the filter (enum arctrace_shim_call_flags); 0 for a function without a
// symbol.
uint32_t function_flags(uintptr_t function);

}  // namespace arctrace::shim
