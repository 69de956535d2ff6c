// The filter of functions with compiled-in hooks: it has their flags by their addresses,
// and their names, because the live filter may change while the program runs. It reads
// the symbol tables of their modules' files: some 0.3 us for each function.
#pragma once

#include <cstdint>

#include "writer_shim/elf/module_slots.hpp"

namespace arctrace::shim {

// Reads the files of modules that were not read yet. To be called whenever the loader's
// list of modules has changed, by one thread at a time.
void read_function_symbols();

// Has functions without hooks noted by their names as well, in all modules: the program
// runs, and any of them may be open. To be called before the modules are read.
void know_functions_that_may_be_open();

// The flags of a function without a hook (enum arctrace_shim_call_flags, those for the
// filter), by its name, if a symbol has it, its size in bytes (0: not known) and its
// module. Takes some ns, or some us where modules are filtered; may be called in a hook.
uint32_t open_function_flags(uintptr_t function, uint64_t size);

// Has the next reading read all modules, because the filter has changed.
void forget_function_symbols();

// How the hooks of a function record its calls at present, under the live filter too.
// Both values are 0 for a function without a symbol. Takes some ns; may be called in a
// hook.
struct FunctionFilter {
  uint32_t flags;      // enum arctrace_shim_call_flags, those for the filter
  uint32_t arg_specs;  // see arg_specs_of()
};
FunctionFilter function_filter(uintptr_t function);

// Whether functions of the module may call hooks that are compiled in.
bool calls_compiled_in_hooks(const ModuleImage& image);

// Whether function_filter() may be other than 0 for any function.
bool any_function_is_filtered();

// The values for a function when the symbols were read, by which it is hooked.
struct KnownFunction {
  uintptr_t address;
  const char* name;  // the linker's; empty: not known
  uint32_t flags_at_start;
  uint32_t arg_specs;
};
KnownFunction known_function(uintptr_t function);

}  // namespace arctrace::shim
