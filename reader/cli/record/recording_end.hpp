// What `record` and its kin say at the end of a recording.
#pragma once

#include <absl/status/status.h>

#include <string>

#include "src/buffer/buffer_view.hpp"
#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/drain/recorder.hpp"
#include "src/recording/options.hpp"
#include "src/recording/snapshot_file.hpp"

namespace arctrace::cli {

// Prints what is to be said of a command's recording, and the line that ends it.
// `has_warned`: there was a warning that the command cannot be traced.
void print_end(const CollectorSummary& summary, const recording::RecordOptions& options,
               const BufferView& buffer, bool has_warned);

// Prints a line each if functions that -P has patched were switched off, if nothing of
// some library was patched, and why, and if small functions were left beside others.
void tell_patches(const CollectorSummary& summary,
                  const recording::RecordOptions& options);

// The line that ends a recording: "5 records, 0 lost, ... FILE".
std::string recording_summary_line(const CollectorSummary& summary,
                                   const std::string& file);

// Writes what the buffer holds into a file, and prints a line that says what was written.
// Error: a file cannot be read or written.
absl::Status write_and_tell(const Buffer& buffer,
                            const recording::SnapshotFileOptions& options);

}  // namespace arctrace::cli
