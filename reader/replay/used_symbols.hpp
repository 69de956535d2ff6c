// Finds the names of the functions that occur in a trace, to be stored in it.
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
  // A line for each module whose file is not there as it was recorded.
  std::vector<std::string> findings;
  size_t functions = 0;
  size_t nameless = 0;      // addresses that have no symbol
  bool is_partial = false;  // `goes_on` said no
};

// The symbols of `keys`: what the trace has stored already, and else what the modules'
// files have. `lines` kYes: also the source line of each address, which takes reading
// debug data. `goes_on` is asked between two modules. One module's symbols are in memory
// at a time, besides the answer.
UsedSymbols find_used_symbols(const Definitions& definitions, const UsedKeys& keys,
                              WithSource lines, const SymbolOptions& options,
                              const std::function<bool()>& goes_on);

}  // namespace arctrace::reader
