// What the user chose of the functions with compiled-in hooks, and of their values, by
// their addresses: from the symbol tables of their modules' files. They are read if
// something was chosen at the start, or may be while the program runs.
#pragma once

#include <cstdint>

namespace arctrace::shim {

// To be called once, before any of the others.
void keep_functions_for_live_choice();

// Reads the files of modules that were not read yet. To be called when the loader's list
// of modules has changed.
void read_function_choice();

// Flags for the filter (enum arctrace_shim_call_flags) as they are now, and the number of
// its values (call_values.hpp); 0 for a function without a symbol.
struct FunctionChoice {
  uint32_t flags;
  uint32_t values;
};
FunctionChoice function_choice(uintptr_t function);

struct KnownFunction {
  uintptr_t address;
  const char* name;  // the linker's; empty: not known
  uint32_t flags_at_start;
  uint32_t values;
};
KnownFunction known_function(uintptr_t function);

}  // namespace arctrace::shim
