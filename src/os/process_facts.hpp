// What /proc tells a process about itself, without libc.
#pragma once

#include <cstdint>

namespace arctrace {

// The executable's path, at most `size` bytes, unterminated. Returns its length, 0 if
// it can't be read.
uint32_t read_executable(char* to, uint32_t size);

// The working directory's path and a slash, in the same way.
uint32_t read_working_directory(char* to, uint32_t size);

// The inode that the first PID namespace of a system has (PROC_PID_INIT_INO).
inline constexpr uint32_t kFirstPidNamespace = 0xEFFFFFFC;

// The inode of the process' PID namespace, 0 if /proc doesn't tell.
uint32_t read_pid_namespace();

// The arguments, each ended by a zero byte, at most `size` bytes in all.
uint32_t read_command_line(char* to, uint32_t size);

// What a process' PROCESS and THREAD records say of it. Read anew at each call, but where
// system calls are forbidden (src/os/kernel_use.hpp): there as it was last read.
struct ProcessFacts {
  static constexpr uint32_t kTextMax = 4096;

  uint32_t parent_pid;
  uint32_t user;
  uint32_t pid_namespace;  // as read_pid_namespace() has it
  uint32_t executable_size;
  uint32_t arguments_size;
  char executable[kTextMax];
  char arguments[kTextMax];
  char thread_name[16];  // the calling thread's, by the kernel
};
const ProcessFacts& process_facts();

// In a fork child where they are forbidden: who its parent is.
void set_parent(uint32_t pid);

// The path of the first jitdump file, `jit-PID.dump`, that the process has mapped
// executable, as those do that generate code and tell its names: at the beginning of
// `buffer`, unterminated. Returns its length, 0 if there is none. A path that with its
// line of /proc/self/maps is longer than `size` is passed over.
uint32_t find_jit_dump(uint32_t pid, char* buffer, uint32_t size);

}  // namespace arctrace
