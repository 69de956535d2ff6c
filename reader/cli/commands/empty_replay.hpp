// What to say of filters that let nothing pass, whose result looks like that of a program
// that makes no calls.
#pragma once

#include <string>
#include <vector>

#include "reader/cli/options/replay_filter_options.hpp"
#include "reader/replay/replay.hpp"

namespace arctrace::cli {

// What is wrong with the first of `globs` that matches no function of a finished replay;
// empty if each matches one, or if only a range was read: other functions are not known.
std::string unmatched_functions(const std::vector<std::string>& globs,
                                const ReplayFilterOptions& options,
                                const reader::Replay& replay);

// Prints a warning if no thread of a finished replay, or no call, passes the filters.
void warn_of_empty_replay(const ReplayFilterOptions& options,
                          const reader::Replay& replay);

}  // namespace arctrace::cli
