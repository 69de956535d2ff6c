// Reads what /proc shows of the calling process.
#include "src/os/process_facts.hpp"

#include <sys/prctl.h>

#include "src/base/large_table.hpp"
#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/buffer/clock.hpp"
#include "src/os/kernel_use.hpp"

namespace arctrace {
namespace {

bool is_equal(const char* a, const char* b, uint32_t size) {
  for (uint32_t i = 0; i < size; ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

// Whether a path of `size` bytes ends in "/jit-PID.dump".
bool is_jit_dump(const char* path, uint32_t size, uint32_t pid) {
  constexpr char kBegin[] = "/jit-";
  constexpr char kEnd[] = ".dump";
  constexpr uint32_t kPartSize = 5;
  if (size < kPartSize) return false;
  uint32_t at = size - kPartSize;
  if (!is_equal(path + at, kEnd, kPartSize)) return false;
  for (; pid != 0; pid /= 10) {
    if (at == 0 || path[--at] != static_cast<char>('0' + pid % 10)) return false;
  }
  return at >= kPartSize && is_equal(path + at - kPartSize, kBegin, kPartSize);
}

// The path in a line "START-END rwxp OFFSET DEVICE INODE   PATH", or `end` if the file is
// not mapped executable.
const char* executable_path(const char* line, const char* end) {
  while (line < end && *line != ' ') ++line;
  if (end - line < 4 || line[3] != 'x') return end;
  while (line < end && *line != '/') ++line;
  return line;
}

// The facts are static, because the first record may come from a handler on a small
// signal stack. Two threads that read into them at once read the same facts, except that
// one may get the other's name.
ARCTRACE_FIRST_LARGE_TABLE ProcessFacts facts;

}  // namespace

void set_parent(uint32_t pid) { facts.parent_pid = pid; }

uint32_t read_executable(char* to, uint32_t size) {
  const long n = sys::readlink("/proc/self/exe", to, size);
  return n < 0 ? 0 : static_cast<uint32_t>(n);
}

uint32_t read_working_directory(char* to, uint32_t size) {
  const long n = raw_syscall(SYS_getcwd, sys::pointer_argument(to), size);
  // The size counts a final zero byte, which the slash replaces.
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

uint64_t read_process_age_ns() {
  constexpr uint64_t kNsInTick = 10'000'000;
  constexpr uint32_t kStartTime = 22;  // fields are counted from 1
  constexpr uint32_t kState = 3;
  char text[512];
  const long fd = sys::open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const long n = sys::pread(static_cast<int>(fd), text, sizeof text, 0);
  sys::close(static_cast<int>(fd));
  // The second field, in parentheses, is a name, which may hold anything.
  long at = n;
  while (at > 0 && text[at - 1] != ')') --at;
  if (at <= 0) return 0;
  uint32_t field = kState - 1;
  uint64_t ticks = 0;
  for (; at < n && field <= kStartTime; ++at) {
    if (text[at] == ' ') {
      ++field;
    } else if (field == kStartTime) {
      if (text[at] < '0' || text[at] > '9') return 0;
      ticks = ticks * 10 + static_cast<uint64_t>(text[at] - '0');
    }
  }
  const uint64_t now_ns = read_clock_ns(CLOCK_BOOTTIME);
  return field <= kStartTime || ticks > now_ns / kNsInTick ? 0
                                                           : now_ns - ticks * kNsInTick;
}

const ProcessFacts& process_facts() {
  if (!may_call_kernel()) return facts;
  facts.parent_pid = sys::getppid();
  facts.user = sys::geteuid();
  facts.pid_namespace = read_pid_namespace();
  facts.executable_size = read_executable(facts.texts, ProcessFacts::kTextMax);
  facts.arguments_size =
      read_command_line(facts.texts + facts.executable_size, ProcessFacts::kTextMax);
  raw_syscall(SYS_prctl, PR_GET_NAME, sys::pointer_argument(facts.thread_name));
  return facts;
}

const ProcessFacts& last_process_facts() { return facts; }

uint32_t find_jit_dump(uint32_t pid, char* buffer, uint32_t size) {
  const long fd = sys::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  uint32_t found = 0;
  uint32_t used = 0;
  bool is_whole = true;  // not the rest of a line that was too long
  while (found == 0) {
    const long n =
        raw_syscall(SYS_read, fd, sys::pointer_argument(buffer + used), size - used);
    if (n <= 0) break;
    used += static_cast<uint32_t>(n);
    uint32_t begin = 0;
    for (uint32_t i = 0; i < used && found == 0; ++i) {
      if (buffer[i] != '\n') continue;
      const char* path = executable_path(buffer + begin, buffer + i);
      const auto length = static_cast<uint32_t>(buffer + i - path);
      if (is_whole && is_jit_dump(path, length, pid)) {
        found = length;
        begin = static_cast<uint32_t>(path - buffer);
        break;
      }
      begin = i + 1;
      is_whole = true;
    }
    if (begin == 0 && used == size && found == 0) {
      used = 0;
      is_whole = false;
      continue;
    }
    used -= begin;
    copy_bytes(buffer, buffer + begin, used);
  }
  sys::close(static_cast<int>(fd));
  return found;
}

}  // namespace arctrace
