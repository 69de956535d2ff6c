// Creates the trace file that a command writes, and writes the contents of a buffer into
// one, for the subcommands snapshot and recover.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/file/file_ring.hpp"
#include "src/recorder/file/trace_file.hpp"
#include "src/recording/events.hpp"
#include "src/recording/options.hpp"

namespace arctrace::recording {

// Creates the trace file that a command writes. Only a file that the user named may be a
// FIFO or device.
absl::StatusOr<recorder::TraceFile> create_output(const OutputFile& output);

// Tells `events` if the trace goes into a FIFO or device.
void announce_special(const recorder::TraceFile& file, Events& events);

// Whether these options cut a recording into several files (FileRing). `mode`: enum
// arctrace_mode.
bool cuts_files(uint32_t mode, const recorder::FileLimits& limits);

struct SnapshotFileOptions {
  OutputFile output;
  std::string earlier;  // an earlier file of the session; empty: none
  bool merges = false;  // all of `earlier` is written too, not only its definitions
  std::vector<std::string> command_line;  // the recorder's, which the file names
  bool is_live = false;  // the clock of the buffer's kernel goes on, and is this one
};

// Writes the whole file, but does not publish it. Returns how many records it has. Error:
// `options.earlier` cannot be read, or the file cannot be written.
absl::StatusOr<uint64_t> write_buffer(const recorder::Buffer& buffer,
                                      const SnapshotFileOptions& options,
                                      recorder::TraceFile& file);

struct WrittenSnapshot {
  uint64_t records;
  uint64_t bytes;  // of the file
};

// Writes and publishes the whole file. `events` is told if it goes into a FIFO or device.
// Error: a file cannot be read or written.
absl::StatusOr<WrittenSnapshot> write_buffer_to_file(const recorder::Buffer& buffer,
                                                     const SnapshotFileOptions& options,
                                                     Events& events);

}  // namespace arctrace::recording
