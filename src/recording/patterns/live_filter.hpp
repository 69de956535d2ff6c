// Makes the live filter of `arctrace ctl` for running programs. These match globs of
// linker's names only; so regular expressions and demangled C++ names are resolved here,
// among the functions and scopes of the programs in the session.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "src/recording/patterns/call_filter.hpp"

namespace arctrace::recording {

struct LiveFilter {
  std::string text;                   // the text for the control page
  std::vector<std::string> warnings;  // a line for each pattern that nothing matches
};

// Makes the filter of options.filter and options.notrace for the programs of the session
// whose buffer is the file `path`. REQUIRES: find_problem() finds none.
// ResourceExhausted: it is longer than the control page allows.
absl::StatusOr<LiveFilter> make_live_filter(const CallFilterOptions& options,
                                            const std::string& path);

}  // namespace arctrace::recording
