// Opens buffers by their paths, and checks whether this process may use them.
#include "src/buffer/open_buffer.hpp"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"

namespace arctrace {

namespace {

// The size of a map's value; 0: not known.
uint64_t size_of_map(long fd) {
  bpf_map_info info{};
  bpf_attr ask{};
  ask.info.bpf_fd = static_cast<uint32_t>(fd);
  ask.info.info_len = sizeof info;
  ask.info.info = reinterpret_cast<uintptr_t>(&info);
  const long error = raw_syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD,
                                 sys::pointer_argument(&ask), sizeof ask);
  return error < 0 ? 0 : info.value_size;
}

}  // namespace

int open_pinned_map(const char* path, uint64_t& size) {
  bpf_attr open{};
  open.pathname = reinterpret_cast<uintptr_t>(path);
  const long fd =
      raw_syscall(SYS_bpf, BPF_OBJ_GET, sys::pointer_argument(&open), sizeof open);
  if (fd < 0) return static_cast<int>(fd);
  raw_syscall(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
  size = size_of_map(fd);
  return static_cast<int>(fd);
}

bool is_pinned_map(const char* path) {
  struct statfs status {};
  return raw_syscall(SYS_statfs, sys::pointer_argument(path),
                     sys::pointer_argument(&status)) == 0 &&
         static_cast<uint64_t>(status.f_type) == BPF_FS_MAGIC;
}

namespace {

// Whether `group` is one of the calling process' groups.
bool is_member(gid_t group) {
  if (raw_syscall(SYS_getegid) == group) return true;
  constexpr long kGroupsMax = 256;
  gid_t groups[kGroupsMax];
  const long count =
      raw_syscall(SYS_getgroups, kGroupsMax, sys::pointer_argument(groups));
  for (long i = 0; i < count; ++i) {
    if (groups[i] == group) return true;
  }
  return false;
}

bool is_meant_for_us(const struct stat& file, BufferAccess access) {
  if (!S_ISREG(file.st_mode) || (file.st_mode & S_IWOTH) != 0) return false;
  const uint32_t user = sys::geteuid();
  if (file.st_uid == user) return true;
  if (user == 0) return access != BufferAccess::kJoin;
  const mode_t wanted = access == BufferAccess::kRead ? S_IRGRP : S_IRGRP | S_IWGRP;
  return (file.st_mode & S_IRWXO) == 0 && (file.st_mode & wanted) == wanted &&
         is_member(file.st_gid);
}

bool is_shared(const struct stat& file) {
  return file.st_uid != sys::geteuid() || (file.st_mode & S_IWGRP) != 0;
}

int open_file(long fd, BufferAccess access, OpenedBuffer& out) {
  struct stat status {};
  if (const long error = sys::stat_fd(static_cast<int>(fd), &status); error < 0) {
    return static_cast<int>(error);
  }
  if (!is_meant_for_us(status, access)) return -EACCES;
  out.is_shared = is_shared(status);
  out.fd = static_cast<int>(fd);
  out.size = static_cast<uint64_t>(status.st_size);
  return 0;
}

// Checks the path, because a map's descriptor has neither owner nor mode.
int open_map(const char* path, BufferAccess access, OpenedBuffer& out) {
  struct stat status {};
  if (const long error =
          raw_syscall(SYS_newfstatat, AT_FDCWD, sys::pointer_argument(path),
                      sys::pointer_argument(&status), AT_SYMLINK_NOFOLLOW);
      error < 0) {
    return static_cast<int>(error);
  }
  if (!is_meant_for_us(status, access)) return -EACCES;
  const int fd = open_pinned_map(path, out.size);
  if (fd < 0) return fd;
  out.fd = fd;
  out.is_shared = is_shared(status);
  out.is_map = true;
  return 0;
}

int open_memory(const char* path, BufferAccess access, OpenedBuffer& out) {
  const int mode = access == BufferAccess::kRead ? O_RDONLY : O_RDWR;
  const long fd = sys::open(path, mode | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd == -EIO) return open_map(path, access, out);  // the error for a pinned map
  if (fd < 0) return static_cast<int>(fd == -ELOOP ? -EACCES : fd);
  const int error = open_file(fd, access, out);
  if (error != 0) sys::close(static_cast<int>(fd));
  return error;
}

// A map can only be read by mapping it. A file must not be mapped yet, because reading
// the mapping raises SIGBUS if the file is cut off meanwhile.
bool copy_header(OpenedBuffer& buffer) {
  arctrace_session_header& header = buffer.header;
  if (!buffer.is_map) {
    return sys::pread(buffer.fd, &header, sizeof header, 0) ==
           static_cast<long>(sizeof header);
  }
  if (buffer.size < ARCTRACE_HEADER_SIZE) return false;
  void* page = sys::map(ARCTRACE_HEADER_SIZE, PROT_READ, MAP_SHARED, buffer.fd);
  if (page == nullptr) return false;
  copy_bytes(&header, page, sizeof header);
  raw_syscall(SYS_munmap, sys::pointer_argument(page), ARCTRACE_HEADER_SIZE);
  return true;
}

// Reads what the open buffer is; closes it on failure.
int examine_untrusted(OpenedBuffer& out) {
  if (copy_header(out)) {
    out.error = read_geometry_untrusted(out.header, ARCTRACE_SESSION_MAGIC, out.size,
                                        out.geometry);
    if (out.error == GeometryError::kNone) return 0;
  }
  sys::close(out.fd);
  return -EPROTO;
}

}  // namespace

int open_buffer_untrusted(const char* path, BufferAccess access, OpenedBuffer& out) {
  out.is_map = false;
  out.error = GeometryError::kNone;
  if (const int error = open_memory(path, access, out); error != 0) return error;
  return examine_untrusted(out);
}

int open_handed_buffer_untrusted(int fd, OpenedBuffer& out) {
  out.error = GeometryError::kNone;
  struct stat status {};
  if (const long error = sys::stat_fd(fd, &status); error < 0) {
    return static_cast<int>(error);
  }
  const long copy = raw_syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return static_cast<int>(copy);
  out.fd = static_cast<int>(copy);
  out.is_map = !S_ISREG(status.st_mode);
  out.is_shared = false;  // it has no path for others
  out.size = out.is_map ? size_of_map(copy) : static_cast<uint64_t>(status.st_size);
  return examine_untrusted(out);
}

}  // namespace arctrace
