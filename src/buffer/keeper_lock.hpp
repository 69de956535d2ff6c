// The lock that says that a process keeps a buffer's memory pinned: an open file
// description's lock on the first byte of the buffer's file. The kernel releases it when
// the process ends, however that comes.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

namespace arctrace {

inline struct flock lock_of_first_byte(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  return lock;
}

// Takes the lock until `fd`, which must be open for writing, is closed. 0 or a negative
// errno: -EAGAIN if another process has it.
inline int take_keeper_lock(int fd) {
  struct flock lock = lock_of_first_byte(F_WRLCK);
  return fcntl(fd, F_OFD_SETLK, &lock) == 0 ? 0 : -errno;
}

// Whether a process has the lock of the file `fd`.
inline bool has_keeper(int fd) {
  struct flock lock = lock_of_first_byte(F_RDLCK);
  return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_WRLCK;
}

}  // namespace arctrace
