// Runs a command under a recording session: arctrace record -- COMMAND.
#pragma once

#include <absl/status/statusor.h>

#include "src/recording/options.hpp"

namespace arctrace::cli {

// Records options.command and returns its exit status; if a signal ended it, ends this
// process by the same signal. If the command cannot be started, prints why and returns
// what a shell would: 127 if it does not exist, 126 if it cannot be executed. Error:
// there was no session to run it in.
absl::StatusOr<int> record_command(const recording::RecordOptions& options);

}  // namespace arctrace::cli
