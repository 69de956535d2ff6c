#include "src/buffer/pinned_map.hpp"

#include <linux/bpf.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include "src/base/raw_syscall.hpp"

namespace arctrace {

int open_pinned_map(const char* path, uint64_t& size) {
  bpf_attr open{};
  open.pathname = reinterpret_cast<uintptr_t>(path);
  const long fd =
      raw_syscall(SYS_bpf, BPF_OBJ_GET, sys::pointer_argument(&open), sizeof open);
  if (fd < 0) return static_cast<int>(fd);
  raw_syscall(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
  bpf_map_info info{};
  bpf_attr ask{};
  ask.info.bpf_fd = static_cast<uint32_t>(fd);
  ask.info.info_len = sizeof info;
  ask.info.info = reinterpret_cast<uintptr_t>(&info);
  const long error = raw_syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD,
                                 sys::pointer_argument(&ask), sizeof ask);
  size = error < 0 ? 0 : info.value_size;
  return static_cast<int>(fd);
}

bool is_pinned_map(const char* path) {
  struct statfs status {};
  return raw_syscall(SYS_statfs, sys::pointer_argument(path),
                     sys::pointer_argument(&status)) == 0 &&
         static_cast<uint64_t>(status.f_type) == BPF_FS_MAGIC;
}

}  // namespace arctrace
