// Where the rest of a session is: of a trace file that its recorder did not end, or of a
// buffer that is being collected.
#pragma once

#include "reader/trace/session.hpp"

namespace arctrace::cli {

// Prints a warning if the file was cut off, and the session's buffer is still there; or
// if it is a buffer of which a collector has taken something.
void warn_of_left_buffer(const reader::Session& session);

}  // namespace arctrace::cli
