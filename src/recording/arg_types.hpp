// What -A and -R mean where they name functions only: the types of the command's
// functions by its DWARF data, and of those that it calls in libraries, as far as it
// declares them.
#pragma once

#include <string>
#include <vector>

#include "src/recording/patterns/call_filter.hpp"

namespace arctrace::recording {

// Adds these types to what the shim is asked to do, and returns a line for each pattern
// of which some functions have no types, or hooks that do not see arguments. `command`:
// the program that is about to be run; empty: not known. REQUIRES: the options are
// without a problem.
std::vector<std::string> encode_types(const CallFilterOptions& options,
                                      const std::string& command,
                                      shim::OptionsEncoder& encoder);

}  // namespace arctrace::recording
