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

// The files that the command line names: those of sessions' buffers, too.
std::vector<std::string> files_or_sessions(const std::vector<std::string>& names);

// The files of a trace, and a Trace of them.
struct OpenFiles {
  reader::TraceFiles files;
  reader::Trace trace;
};

// Opens a recording: all files of it that are to be read, or a buffer. If it is one file
// of at most 256 MiB whose recorder died, and the buffer is still there, what is opened
// is that which `arctrace recover --merge` would write of both at this moment, in a
// temporary file, which stays open. Prints a warning of that, or as warn_of_left_buffer()
// does. `stops` is as TraceFiles::trace() has it. Errors: those of TraceFiles; that of an
// empty file says which sessions a recorder may have left instead.
absl::StatusOr<OpenFiles> open_files_with_left_buffer(
    const std::vector<std::string>& paths, const reader::OpenOptions& options,
    const reader::TraceFiles::Stops& stops);

// The same for what is read once.
absl::StatusOr<reader::Trace> open_with_left_buffer(const std::vector<std::string>& paths,
                                                    const reader::OpenOptions& options);

}  // namespace arctrace::cli
