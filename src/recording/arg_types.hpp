// Finds the types for -A and -R where these name functions only: those of the command's
// functions by its DWARF data, and of functions that it calls in libraries, as far as it
// declares them.
#pragma once

#include <string>
#include <vector>

#include "src/recording/patterns/filters.hpp"

namespace arctrace::recording {

// Adds these types to the shim's options, and returns a line for each pattern that
// matches functions without types, or with hooks that do not see arguments. `command`:
// the program that is about to be run; empty: not known. REQUIRES: the options are
// without a problem.
std::vector<std::string> encode_types(const CallFilterOptions& options,
                                      const std::string& command,
                                      shim::OptionsEncoder& encoder);

}  // namespace arctrace::recording
