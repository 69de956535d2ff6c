// Opens the trace that a command names: all its files, with the records that are still in
// a buffer, and with the rights of its owner.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <vector>

#include "reader/trace/record.hpp"
#include "reader/trace/session.hpp"
#include "reader/trace/trace.hpp"
#include "reader/trace/trace_files.hpp"
#include "src/recorder/jit/process_rights.hpp"

namespace arctrace::cli {

// Prints a warning if the file was cut off and the session's buffer still exists, or if
// the trace is a buffer of which a collector has taken something.
void warn_of_abandoned_buffer(const reader::Session& session);

// Returns the files that the command line names; a session stands for its buffer's file.
std::vector<std::string> files_or_sessions(const std::vector<std::string>& names);

// The files of a trace, and a Trace of them.
struct OpenFiles {
  reader::TraceFiles files;
  reader::Trace trace;
};

// Opens a recording: all files of it that are to be read, or a buffer. If it is one file
// of at most 256 MiB whose recorder died, and the buffer still exists, this opens what
// `arctrace recover --merge` would write of both now, in a temporary file, which stays
// open. Prints a warning of that, or as warn_of_abandoned_buffer() does. `stops`: see
// TraceFiles::trace(). Errors: those of TraceFiles; the error of an empty file says which
// sessions a dead recorder may have abandoned.
absl::StatusOr<OpenFiles> open_files_with_abandoned_buffer(
    const std::vector<std::string>& paths, const reader::OpenOptions& options,
    const reader::TraceFiles::Stops& stops);

// Does the same for a trace that is read once.
absl::StatusOr<reader::Trace> open_with_abandoned_buffer(
    const std::vector<std::string>& paths, const reader::OpenOptions& options);

// Makes the ends of the range that count from the end of the trace (is_from_end()) count
// from the session's start. Opens the trace only if there are any. Errors: those of
// TraceFiles; the range ends before it starts.
absl::Status count_from_end_of(const std::vector<std::string>& names,
                               reader::TimeRange& range);

// Gives this thread the rights with which it opens the files that a trace names: modules,
// debug files. If this process is root's and the trace at `path` is another user's, who
// may have written any name into it, the thread has that user's rights as long as the
// result lives. Else returns null: there is nothing to give up.
std::unique_ptr<recorder::ActingWithRights> act_as_owner(const std::string& path);

}  // namespace arctrace::cli
