// Of a trace file that its recorder did not end: where the rest of the session is.
#pragma once

#include "reader/trace/session.hpp"

namespace arctrace::cli {

// Prints a warning if the file was cut off, and the session's buffer is still there.
void warn_of_left_buffer(const reader::Session& session);

}  // namespace arctrace::cli
