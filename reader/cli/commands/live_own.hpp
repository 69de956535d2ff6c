// `arctrace live` with a session of its own: of a command, or of processes that run
// already.
#pragma once

#include <absl/status/statusor.h>

#include "reader/cli/options/live_options.hpp"

namespace arctrace::cli {

// Starts options.record.command, or if that is empty joins options.record.pids, and shows
// what they record: lines or the screen, as options.plain says. Returns the exit status:
// the command's; of processes that were joined 0 once the user has left or they have
// ended, and kStatusInterrupted after Ctrl-C. Error: nothing is recorded.
absl::StatusOr<int> live_own(const LiveOptions& options);

}  // namespace arctrace::cli
