// Where the rest of a session is: of a trace file that its recorder did not end, or of a
// buffer that is being collected.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "reader/trace/session.hpp"
#include "reader/trace/trace.hpp"
#include "reader/trace/trace_files.hpp"

namespace arctrace::cli {

// Prints a warning if the file was cut off, and the session's buffer is still there; or
// if it is a buffer of which a collector has taken something.
void warn_of_left_buffer(const reader::Session& session);

// Opens the trace. If it is a file of at most 256 MiB whose recorder died, and the buffer
// is still there, what is opened is that which `arctrace recover --merge` would write of
// both at this moment, in a temporary file. Prints a warning of that, or as
// warn_of_left_buffer() does. Errors: those of Trace::open(); that of an empty file says
// which sessions a recorder may have left instead.
absl::StatusOr<reader::Trace> open_with_left_buffer(const std::string& path,
                                                    const reader::OpenOptions& options);

// The files of a trace, and a Trace of them.
struct OpenFiles {
  reader::TraceFiles files;
  reader::Trace trace;
};

// The same for what is read again and again: the merged file stays open. Several files
// are read as they are. `stops` is as TraceFiles::trace() has it. Errors: those of
// TraceFiles.
absl::StatusOr<OpenFiles> open_files_with_left_buffer(
    const std::vector<std::string>& paths, const reader::OpenOptions& options,
    const reader::TraceFiles::Stops& stops);

}  // namespace arctrace::cli
