// What can be said of -P before the recorded program begins, by an analysis of its file.
#pragma once

#include <string>
#include <vector>

#include "reader/cli/options/call_filter_options.hpp"

namespace arctrace::cli {

struct PatchCheck {
  // A line for each pattern of -P that cannot match a function to be patched: neither one
  // of the program, nor one of another program, because it executes none.
  std::vector<std::string> problems;
  std::vector<std::string> warnings;
};

// `command`: the program, as it is executed. What was found of its file is in the user's
// cache then, where the process that patches the program finds it. Finds nothing if the
// file is not there, or none that can be analysed.
PatchCheck check_patches(const CallFilterOptions& options, const std::string& command);

}  // namespace arctrace::cli
