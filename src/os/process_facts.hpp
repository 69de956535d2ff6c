// Facts that a process learns about itself without libc: which libc it has, and what
// /proc shows of it, for the records that define the process and its threads.
#pragma once

#include <gnu/libc-version.h>

#include <cstdint>

// Whether the process has glibc. Functions that only glibc has are declared weak, so that
// our libraries can be loaded with another libc.
#pragma weak gnu_get_libc_version

namespace arctrace {

inline bool is_glibc() { return &gnu_get_libc_version != nullptr; }

// Copies the executable's path to `to`, at most `size` bytes, unterminated. Returns its
// length, 0 if it can't be read.
uint32_t read_executable(char* to, uint32_t size);

// Copies the working directory's path and a slash, as read_executable() does.
uint32_t read_working_directory(char* to, uint32_t size);

// The inode of a system's first PID namespace (PROC_PID_INIT_INO).
inline constexpr uint32_t kFirstPidNamespace = 0xEFFFFFFC;

// The inode of the process' PID namespace, 0 if it can't be read.
uint32_t read_pid_namespace();

// Copies the arguments, each ended by a zero byte, at most `size` bytes in all. Returns
// how many.
uint32_t read_command_line(char* to, uint32_t size);

// For how long the process has existed at most, also as other programs, in ns: the kernel
// counts in hundredths of a second. 0 if it can't be read.
uint64_t read_process_age_ns();

// The facts in a process' PROCESS and THREAD records. Each call reads them anew, except
// where system calls are forbidden (src/os/kernel_use.hpp); there it returns what was
// last read.
struct ProcessFacts {
  static constexpr uint32_t kTextMax = 4096;

  uint32_t parent_pid;
  uint32_t user;
  uint32_t pid_namespace;  // see read_pid_namespace()
  uint32_t executable_size;
  uint32_t arguments_size;
  char thread_name[16];  // the calling thread's, as the kernel has it
  // The executable's path, and then the arguments: one after the other, so that they are
  // on one page, most likely.
  char texts[2 * kTextMax];

  const char* executable() const { return texts; }
  const char* arguments() const { return texts + executable_size; }
};
const ProcessFacts& process_facts();

// The facts that process_facts() last read in this process or in the one that forked it,
// without a system call.
const ProcessFacts& last_process_facts();

// Sets parent_pid in a fork child where system calls are forbidden.
void set_parent(uint32_t pid);

// Finds the first jitdump file, `jit-PID.dump`, that the process has mapped executable; a
// runtime does that to announce the file. Copies its path to the beginning of `buffer`,
// unterminated, and returns its length, 0 if there is none. A line of /proc/self/maps
// that is longer than `size` is skipped.
uint32_t find_jit_dump(uint32_t pid, char* buffer, uint32_t size);

}  // namespace arctrace
