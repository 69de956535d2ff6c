// Creates the trace file that a command writes.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>

#include "src/recorder/file/kept_files.hpp"
#include "src/recorder/file/trace_file.hpp"
#include "src/recording/events.hpp"
#include "src/recording/options.hpp"

namespace arctrace::recording {

// Only a file that the user named may be a FIFO or device.
absl::StatusOr<TraceFile> create_output(const OutputFile& output);

// `events` hears if the trace goes into a FIFO or device.
void announce_special(const TraceFile& file, Events& events);

// Whether these options cut a recording into several files (FileRing). `mode`: enum
// arctrace_mode.
bool cuts_files(uint32_t mode, const FileLimits& limits);

}  // namespace arctrace::recording
