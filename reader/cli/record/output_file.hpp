// Creates the trace file that a command writes.
#pragma once

#include <absl/status/statusor.h>

#include "reader/cli/options/options.hpp"
#include "src/recorder/file/trace_file.hpp"

namespace arctrace::cli {

// Only a file that the user named may be a FIFO or device.
absl::StatusOr<TraceFile> create_output(const OutputFile& output);

// Prints a line if the trace goes into a FIFO or device.
void announce_special(const TraceFile& file);

}  // namespace arctrace::cli
