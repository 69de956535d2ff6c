// Opens and maps a trace buffer that another process created: a file in shared memory, or
// a pinned BPF map. The writer, the recorder and the readers all open buffers here
// (SPEC.md, rules of section 1). A mapping survives that another process cuts off the
// file.
#pragma once

#include <arctrace/format.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include <cstddef>
#include <cstdint>

#include "src/buffer/buffer_view.hpp"

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

// Opens a buffer of which the recorder has handed this process the descriptor `fd`, which
// stays open: who owns it, and where it lies, does not matter then. Else as
// open_buffer_untrusted().
int open_handed_buffer_untrusted(int fd, OpenedBuffer& out);

// Opens a buffer that is the value of a BPF map, by the path at which the map is pinned:
// opening such a path as a file fails with EIO. Returns a descriptor of the map, to be
// mapped shared, and sets `size` to the value's size in bytes. A negative errno if there
// is no such map or it may not be used.
int open_pinned_map(const char* path, uint64_t& size);

// Whether `path` is in a BPF file system.
bool is_pinned_map(const char* path);

// The lock by which a process says how much of a buffer's memory it keeps pinned: an open
// file description's lock on as many bytes of the buffer's file, from its beginning. The
// kernel releases it when the process ends, however that comes.

// `size`: in bytes; 0: all there may be.
inline struct flock lock_of_first_bytes(short type, uint64_t size) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_len = static_cast<off_t>(size);
  return lock;
}

// Takes the lock, or makes it longer, until `fd`, which must be open for writing, is
// closed. `size`: in bytes, not 0. 0 or a negative errno: -EAGAIN if another process has
// it.
inline int take_keeper_lock(int fd, uint64_t size) {
  struct flock lock = lock_of_first_bytes(F_WRLCK, size);
  return fcntl(fd, F_OFD_SETLK, &lock) == 0 ? 0 : -errno;
}

// How many bytes of the file `fd` a process keeps pinned by its own account, which may be
// any number; 0: there is none.
inline uint64_t pinned_bytes_untrusted(int fd) {
  struct flock lock = lock_of_first_bytes(F_RDLCK, 0);
  if (fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_WRLCK || lock.l_start != 0) {
    return 0;
  }
  return static_cast<uint64_t>(lock.l_len);
}

constexpr uint64_t kHugePageSize = uint64_t{2} << 20;

// Maps `size` bytes of a file or BPF map, shared, for reading and writing, at an address
// at which the kernel can map its huge pages as such, so that a process faults once for
// 2 MiB and not once for 4096 bytes. On failure
// returns null and sets `error` to the negative errno.
std::byte* map_for_huge_pages(int fd, uint64_t size, long& error);

// Handles that another process cuts off the file of a mapped buffer. An access after the
// file's end raises SIGBUS, and whoever may write to a buffer that is shared with a group
// can shorten it. The mapping then becomes private zeros, so its gate is closed.

// Guards the mapping from now on, and installs a handler of SIGBUS that hands on signals
// of other memory. `on_cut`: called by that handler once the mapping is replaced; may be
// null. False: too many mappings are guarded, or no handler can be installed.
bool guard_against_truncation(std::byte* base, size_t size, void (*on_cut)());

// The mapping is about to be removed. Returns whether it was replaced meanwhile.
bool end_truncation_guard(const std::byte* base);

// Whether the mapping that begins at `base` is guarded and was replaced.
bool is_cut_off(const std::byte* base);

}  // namespace arctrace
