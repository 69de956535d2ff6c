// What -A and -R without values mean: the types of the command's functions, by its DWARF
// data, and of those that it calls in libraries, as far as it declares them.
#pragma once

#include <string>
#include <vector>

#include "reader/cli/options/call_filter_options.hpp"

namespace arctrace::cli {

struct ValueTypes {
  std::string encoded;  // for the shim, behind encode()'s text
  std::vector<std::string>
      warnings;  // a line for each pattern of which there is something
};

// `command`: the program that is about to be run; empty: not known. REQUIRES: the options
// are without a problem.
ValueTypes find_value_types(const CallFilterOptions& options, const std::string& command);

}  // namespace arctrace::cli
