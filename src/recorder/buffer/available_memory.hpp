// The memory that a buffer may take: the machine's, what the cgroups of this process
// permit, and the free space of the buffer's directory; and what helps where there is
// none.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>

namespace arctrace::recorder {

// The directory of buffers if no other one is named.
inline constexpr const char* kBufferDirectory = "/dev/shm";

// A source of memory.
struct AvailableMemory {
  uint64_t total = UINT64_MAX;  // bytes; UINT64_MAX: it sets no limit
  uint64_t free = UINT64_MAX;   // memory that is not used, or could be had back at once
  std::string name;             // as a message calls it
};

// The memory that the limits of the process' cgroups (version 1 and 2), and of those
// around them, leave free. The lowest limit need not be the one with the least free
// memory, because others use memory of an outer cgroup.
struct CgroupMemory {
  AvailableMemory least_total;
  AvailableMemory least_free;
};

// `root`: the directory that stands for "/", which tests replace.
CgroupMemory cgroup_memory(const std::string& root = "/");

// The space in the file system of a directory: without a limit if it has none, or if the
// directory does not exist.
AvailableMemory directory_space(const std::string& directory);

// The machine's memory; all of it counts as free.
AvailableMemory machine_memory();

// Whether the directory's files are in memory. True also if it does not exist.
bool is_in_memory(const std::string& directory);

// The status for a buffer of `size` bytes whose file could not be made in `directory`:
// the reason, and what helps. `error`: errno. `size` is 0 if the file or its directory
// was refused, and not the buffer's size.
absl::Status explain_directory(int error, uint64_t size, const std::string& directory);

// "; as root: mount ...": the commands that help, each after a semicolon.
std::string directory_remedies(const std::string& directory, bool is_too_small);

// "64M", as options have it.
std::string size_text(uint64_t bytes);

}  // namespace arctrace::recorder
