// What `record` says of patterns that no function has matched.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/recording/patterns/call_filter.hpp"
#include "src/recording/patterns/session_functions.hpp"

namespace arctrace::recording {

// The patterns that a function of the session matches, one bit each in the order of the
// control page's word.
uint64_t matched_patterns(const CallFilterOptions& options,
                          const SessionFunctions& session);

// A line for each pattern that no function matched: why, if the program `command` has
// such a function, or else similar names of its functions. `matched`: the control page's
// word.
std::vector<std::string> unmatched_patterns(const CallFilterOptions& options,
                                            uint64_t matched, const std::string& command);

}  // namespace arctrace::recording
