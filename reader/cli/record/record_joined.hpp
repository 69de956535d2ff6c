// Records processes that run already: arctrace record --pid.
#pragma once

#include <absl/status/statusor.h>

#include "src/recording/options.hpp"

namespace arctrace::cli {

// Joins options.pids and records them until a signal, options.duration_ns, or their end.
// Returns the exit status. Error: nothing was recorded; no process was changed, but some
// may have loaded the shim, which does nothing.
absl::StatusOr<int> record_joined(const recording::RecordOptions& options);

}  // namespace arctrace::cli
