// Writes what a buffer holds into a trace file: for the subcommands snapshot and recover.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/file/trace_file.hpp"
#include "src/recording/events.hpp"
#include "src/recording/options.hpp"

namespace arctrace::recording {

struct SnapshotFileOptions {
  OutputFile output;
  std::string earlier;  // a file of the session from before; empty: none
  bool merges = false;  // all of `earlier` is written too, not only its definitions
  std::vector<std::string> command_line;  // what the file is to be recorded by
  bool is_live = false;  // the clock of the buffer's kernel goes on, and is this one
};

// Writes the whole file, but does not publish it. Returns how many records it has. Error:
// `options.earlier` cannot be read, or the file cannot be written.
absl::StatusOr<uint64_t> write_buffer(const Buffer& buffer,
                                      const SnapshotFileOptions& options,
                                      TraceFile& file);

struct WrittenSnapshot {
  uint64_t records;
  uint64_t bytes;  // of the file
};

// Writes and publishes it. `events` hears if it goes into a FIFO or device. Error: a file
// cannot be read or written.
absl::StatusOr<WrittenSnapshot> write_buffer_to_file(const Buffer& buffer,
                                                     const SnapshotFileOptions& options,
                                                     Events& events);

}  // namespace arctrace::recording
