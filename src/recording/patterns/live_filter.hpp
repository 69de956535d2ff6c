// Makes the live filter of `arctrace ctl` for running programs. Programs match globs of
// linker's names only; so regular expressions and demangled C++ names are resolved here,
// among the functions and scopes of the programs in the session.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/recording/patterns/filters.hpp"

namespace arctrace::recording {

// The glob that matches only this name.
std::string exactly(std::string_view name);

enum class Coverage : uint8_t {
  kForbidden,  // no glob may match it
  kAllowed,
  kWanted  // some glob has to match it
};
struct CoveredName {
  std::string_view name;
  Coverage coverage;
};

// The fewest globs, each a name or a prefix of names followed by "*", that match all
// names that they have to, and none that they must not. REQUIRES: `names` are sorted and
// unique.
std::vector<std::string> prefix_cover(const std::vector<CoveredName>& names);

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
