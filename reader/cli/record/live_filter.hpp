// What `arctrace ctl` chooses in programs that run: patterns as the programs understand
// them, which are globs of linker's names. Whatever else a pattern means, regular
// expressions and C++ names as people write them, is looked up here, among the functions
// of the programs in the session.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "reader/cli/options/call_filter_options.hpp"
#include "src/recorder/buffer/buffer.hpp"

namespace arctrace::cli {

struct LiveChoice {
  std::string text;                   // as the control page has it
  std::vector<std::string> warnings;  // a line for each pattern that nothing matches
};

// Of options.chosen and options.left_out, for the programs of the session whose buffer's
// file is `path`. REQUIRES: find_problem() finds none. ResourceExhausted: more than the
// control page holds.
absl::StatusOr<LiveChoice> make_live_choice(const CallFilterOptions& options,
                                            const std::string& path);

// Has the session's programs follow it: each function from its next call on. Aborted:
// somebody else does the same.
absl::Status publish(const LiveChoice& choice, const Buffer& buffer);

}  // namespace arctrace::cli
