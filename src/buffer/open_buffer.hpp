// Opening a trace buffer that somebody else made: a file in shared memory, or a BPF map
// that is pinned. For the writer, the recorder and readers alike (SPEC.md, rules of
// section 1).
#pragma once

#include <arctrace/format.h>

#include <cstdint>

#include "src/buffer/geometry.hpp"

namespace arctrace {

enum class BufferAccess : uint8_t { kRead, kReadWrite };

struct OpenedBuffer {
  int fd;                          // the caller's to close, if the call succeeded
  bool is_map;                     // a BPF map, which can only be mapped, not read
  uint64_t size;                   // of the file or map, in bytes
  arctrace_session_header header;  // a private copy
  Geometry geometry;               // checked: the whole buffer is there
  GeometryError error;             // why the call returned -EPROTO; kNone: no header
};

// Opens the buffer at `path` without following a link there. It must be a regular file or
// a pinned map of the calling process' effective user (root: of anyone), or one of a
// group of that user which gives others nothing, and nobody outside the group may write
// to it. 0 or a negative errno: -EACCES for what is not meant for this process, -EPROTO
// for what is no buffer of this version, else what the system call said. No libc, no
// malloc; async-signal safe.
int open_buffer_untrusted(const char* path, BufferAccess access, OpenedBuffer& out);

}  // namespace arctrace
