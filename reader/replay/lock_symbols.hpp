// Finds the names of the locks in a trace that are variables, to be stored in it.
#pragma once

#include <cstddef>

#include "reader/replay/used_symbols.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/key_scan.hpp"

namespace arctrace::reader {

// Adds to `symbols`, as functions are stored, those of `locks` that lie in a variable of
// a module, by what the trace has stored already, and else by the module's file. Returns
// how many.
size_t add_lock_symbols(const Definitions& definitions, const UsedKeys& locks,
                        UsedSymbols& symbols);

}  // namespace arctrace::reader
