// How `record` and related commands run a recording (record_session.cpp), and what they
// print at its end (recording_end.cpp).
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "reader/cli/options/record_options.hpp"
#include "src/buffer/buffer_view.hpp"
#include "src/recorder/buffer/buffer.hpp"
#include "src/recorder/drain/recorder.hpp"
#include "src/recording/options.hpp"
#include "src/recording/output_file.hpp"

namespace arctrace::cli {

// Runs a command under a recording session: arctrace record -- COMMAND. Records
// options.command and returns its exit status; if a signal ended it, ends this process by
// the same signal. If the command cannot be started, prints why and returns what a shell
// would: 127 if it does not exist, 126 if it cannot be executed. Error: there was no
// session to run it in.
absl::StatusOr<int> record_command(const recording::RecordOptions& options);

// Records processes that run already: arctrace record --pid. Joins options.pids and
// records them until a signal, options.duration_ns, or their end. Returns the exit
// status. Error: nothing was recorded; no process was changed, but some may have loaded
// the shim, which does nothing.
absl::StatusOr<int> record_joined(const recording::RecordOptions& options);

// Prints the messages about a command's recording, and the line that ends it.
// `has_warned`: there was a warning that the command cannot be traced.
void print_end(const recorder::CollectorSummary& summary,
               const recording::RecordOptions& options, const BufferView& buffer,
               bool has_warned);

// Prints a line each if functions that -P has patched were switched off, if nothing of
// some program (unless that is said already) or some library was patched, and why, and if
// small functions were skipped.
void tell_patches(const recorder::CollectorSummary& summary,
                  const recording::RecordOptions& options, bool is_refusal_said);

// Returns which option records functions of a program itself, which has this file: "-P .
// its own functions" or, of an interpreter, "-P 'lib:libpython*:PATTERN' functions of
// libpython3.11.so.1.0".
std::string patch_advice(const std::string& program);

// Returns the line that ends a recording: "5 records, 0 lost, ... FILE".
std::string recording_summary_line(const recorder::CollectorSummary& summary,
                                   const std::string& file);

// Writes the content of the buffer into a file, and prints a line that says what was
// written. Error: a file cannot be read or written.
absl::Status write_and_tell(const recorder::Buffer& buffer,
                            const recording::SnapshotFileOptions& options);

// Prints since when the records of all threads are in the file, if it is a copy of a
// buffer in which some were overwritten; and a warning if that is less than `keep_ns`.
void tell_kept(const std::string& path, uint64_t keep_ns);

// Prints that a program can't be traced. `why`: enum arctrace_untraced.
void warn_untraced(const std::string& program, uint32_t why);

// Prints a warning for each program that traced processes executed and that was not
// traced.
void warn_of_untraced(const recorder::CollectorSummary& summary);

// Prints a warning for names in the filter of events, instants and counters that no
// program has defined.
void warn_of_unmatched_events(const recorder::CollectorSummary& summary,
                              const recording::RecordFilterOptions& filter);

// Prints a warning if the session may run out of identities.
void warn_of_identities(const recorder::CollectorSummary& summary);

// Prints a warning for each pattern that no function matched. `matched`: the control
// page's word. `command`: the program in which similar names are looked for. `summary`:
// of the recording, which knows why nothing was patched; null: that is not known.
void warn_of_unmatched(const recording::CallFilterOptions& filter, uint64_t matched,
                       const std::string& command,
                       const recorder::CollectorSummary* summary = nullptr);

// Prints a warning if programs could not map the buffer within their memory limit.
// Returns whether it did.
bool warn_of_missing_memory(const BufferView& buffer);

}  // namespace arctrace::cli
