#include "src/process_facts.hpp"

#include "src/raw_syscall.hpp"

namespace arctrace {

uint32_t read_executable(char* to, uint32_t size) {
  const long n = sys::readlink("/proc/self/exe", to, size);
  return n < 0 ? 0 : static_cast<uint32_t>(n);
}

uint32_t read_working_folder(char* to, uint32_t size) {
  const long n = raw_syscall(SYS_getcwd, sys::pointer_argument(to), size);
  // With a zero byte behind it, which the slash replaces.
  if (n <= 1 || to[0] != '/') return 0;
  if (n > 2) to[n - 1] = '/';
  return n > 2 ? static_cast<uint32_t>(n) : 1;
}

uint32_t read_pid_namespace() {
  char name[32];  // pid:[4026531836]
  const long n = sys::readlink("/proc/self/ns/pid", name, sizeof name);
  uint32_t inode = 0;
  for (long i = 0; i < n; ++i) {
    if (name[i] >= '0' && name[i] <= '9') {
      inode = inode * 10 + static_cast<uint32_t>(name[i] - '0');
    }
  }
  return inode;
}

uint32_t read_command_line(char* to, uint32_t size) {
  const long fd = sys::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  uint32_t used = 0;
  while (used < size) {
    const long n = sys::pread(static_cast<int>(fd), to + used, size - used, used);
    if (n <= 0) break;
    used += static_cast<uint32_t>(n);
  }
  sys::close(static_cast<int>(fd));
  return used;
}

}  // namespace arctrace
