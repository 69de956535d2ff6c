// The first bytes of a trace: what it is, or why it cannot be read.
#pragma once

#include <absl/status/statusor.h>

#include "reader/trace/input.hpp"
#include "reader/trace/trace.hpp"
#include "src/buffer/geometry.hpp"

namespace arctrace::reader {

struct SessionHeader {
  Session session;
  Geometry geometry;
};

// Reads and checks the session header of a trace file or a buffer's image. Errors, each
// one line that names the input: empty, foreign, cut off, of another version or byte
// order, or a geometry that cannot be.
absl::StatusOr<SessionHeader> read_session_header_untrusted(Input& input);

}  // namespace arctrace::reader
