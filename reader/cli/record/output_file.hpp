// Creates the trace file that a command writes.
#pragma once

#include <absl/status/statusor.h>

#include "reader/cli/options/options.hpp"
#include "src/recorder/file/trace_file.hpp"

namespace arctrace::cli {

// Prints a line if the trace goes into a FIFO or device, which only a file that the user
// named may be.
absl::StatusOr<TraceFile> create_output(const OutputFile& output);

}  // namespace arctrace::cli
