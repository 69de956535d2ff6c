// The lock by which a process says how much of a buffer's memory it keeps pinned: an open
// file description's lock on as many bytes of the buffer's file, from its beginning. The
// kernel releases it when the process ends, however that comes.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include <cstdint>

namespace arctrace {

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
inline uint64_t kept_bytes_untrusted(int fd) {
  struct flock lock = lock_of_first_bytes(F_RDLCK, 0);
  if (fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_WRLCK || lock.l_start != 0) {
    return 0;
  }
  return static_cast<uint64_t>(lock.l_len);
}

}  // namespace arctrace
