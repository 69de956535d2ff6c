// The session header of a trace: what the trace is, or why it cannot be read.
#pragma once

#include <absl/status/statusor.h>

#include "reader/trace/input.hpp"
#include "reader/trace/session.hpp"
#include "src/buffer/geometry.hpp"

namespace arctrace::reader {

struct SessionHeader {
  Session session;
  Geometry geometry;
};

// Reads and checks the session header of a trace file or a buffer's image. Errors, each
// in one line that names the input: it is empty, foreign, cut off, or of another version
// or byte order, or its geometry is not valid.
absl::StatusOr<SessionHeader> read_session_header_untrusted(Input& input);

}  // namespace arctrace::reader
