// What can be said of -P before the recorded program begins, by an analysis of its file.
#pragma once

#include <string>
#include <vector>

#include "src/recording/patterns/call_filter.hpp"

namespace arctrace::recording {

// A line for each pattern of -P that cannot match a function to be patched: neither one
// of the program, nor one of another program, because it executes none: neither it nor a
// library that it is linked with imports a function for that. Patterns for all functions
// are never among them. `command`: the program, as it is executed. None if its file is
// not there, cannot be analysed, or is of a kind of which no function is patched. Takes
// as long as the analysis of the program, unless all patterns are for all functions. What
// it finds is in the user's cache then, where the process that patches the program finds
// it.
std::vector<std::string> patch_problems(const CallFilterOptions& options,
                                        const std::string& command);

}  // namespace arctrace::recording
