// Opens a trace buffer that another process created: a file in shared memory, or a pinned
// BPF map. The writer, the recorder and the readers all open buffers here (SPEC.md, rules
// of section 1).
#pragma once

#include <arctrace/format.h>

#include <cstdint>

#include "src/buffer/geometry.hpp"

namespace arctrace {

enum class BufferAccess : uint8_t {
  kRead,
  kReadWrite,
  kJoin,  // read and write as a writer, which depends on what the owner does to the file
};

struct OpenedBuffer {
  int fd;                          // the caller's to close, if the call succeeded
  bool is_map;                     // a BPF map, which can only be mapped, not read
  bool is_shared;                  // other users than this process' may write to it
  uint64_t size;                   // of the file or map, in bytes
  arctrace_session_header header;  // a private copy
  Geometry geometry;               // checked, also against the size
  GeometryError error;             // why the call returned -EPROTO; kNone: no header
};

// Opens the buffer at `path`, without following a link there. The buffer must be a
// regular file or a pinned map that others than its owner and its group can't write to.
// It must belong to the calling process' effective user, or to one of the process'
// groups, with the wanted access for the group and none for others. Root may open any,
// but joins only root's. Returns 0 or a negative errno: -EACCES if the buffer is not
// meant for this process, -EPROTO if it is not a buffer of this version, else the error
// of the system call. Uses no libc and no malloc; async-signal safe.
int open_buffer_untrusted(const char* path, BufferAccess access, OpenedBuffer& out);

}  // namespace arctrace
