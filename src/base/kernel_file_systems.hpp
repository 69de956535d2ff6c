// Tells the files that a kernel or a user's program makes up from those on a disk.
// Reading one of the former can block for ever, can take away what is read (/proc/kmsg),
// or can hand out what only the reader may see (/proc/kallsyms).
#pragma once

#include <sys/vfs.h>

#include <cstdint>

#include "src/base/raw_syscall.hpp"

namespace arctrace {

// Whether the open file `fd` is on a file system whose files have no stored contents, or
// on one that cannot be asked. `is_ours`: the file belongs to this process' user; then
// FUSE is accepted, by which its owner can make this process wait.
inline bool is_made_up_file(int fd, bool is_ours) {
  struct statfs facts;
  if (raw_syscall(SYS_fstatfs, fd, sys::pointer_argument(&facts)) < 0) return true;
  switch (static_cast<uint32_t>(facts.f_type)) {
    case 0x00009FA0:  // proc
    case 0x62656572:  // sysfs
    case 0x64626720:  // debugfs
    case 0x74726163:  // tracefs
    case 0x73636673:  // securityfs
    case 0x62656570:  // configfs
    case 0xCAFE4A11:  // bpf
    case 0x0027E0EB:  // cgroup
    case 0x63677270:  // cgroup2
    case 0x6165676C:  // pstore
    case 0xDE5E81E4:  // efivarfs
    case 0xF97CFF8C:  // selinuxfs
    case 0x43415D53:  // smackfs
    case 0x6E736673:  // nsfs
    case 0x19800202:  // mqueue
      return true;
    case 0x65735546:  // fuse
      return !is_ours;
    default:
      return false;
  }
}

}  // namespace arctrace
