// Finds the names of the functions that occur in a trace, and of its locks that are
// variables, to be stored in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reader/symbols/symbolizer.hpp"
#include "reader/trace/definitions.hpp"
#include "reader/trace/key_scan.hpp"
#include "reader/trace/stored_symbols.hpp"

namespace arctrace::reader {

struct UsedSymbols {
  std::vector<ModuleSymbols> modules;
  // A line for each module whose file is not the recorded one, or does not exist.
  std::vector<std::string> findings;
  size_t functions = 0;
  size_t nameless = 0;      // addresses that have no symbol
  bool is_partial = false;  // `goes_on` returned false
};

// Returns the symbols of `keys`: those that the trace has stored already, and else those
// in the modules' files. `lines` kYes: also the source line of each address, which takes
// reading debug data. `goes_on` is asked between two modules. One module's symbols are in
// memory at a time, besides the result.
UsedSymbols find_used_symbols(const Definitions& definitions, const UsedKeys& keys,
                              WithSource lines, const SymbolOptions& options,
                              const std::function<bool()>& goes_on);

// Finds the names of the locks in a trace that are variables, to be stored in it. Adds to
// `symbols`, as functions are stored, those of `locks` that lie in a variable of a
// module, from the symbols that the trace has stored already, and else from the module's
// file or debug file; with `lines` kYes also the names of members. `goes_on` is asked
// between two locks. Returns how many.
size_t add_lock_symbols(const Definitions& definitions, const UsedKeys& locks,
                        WithSource lines, const SymbolOptions& options,
                        const std::function<bool()>& goes_on, UsedSymbols& symbols);

}  // namespace arctrace::reader
