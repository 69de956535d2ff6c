// How much memory a buffer may take: what the cgroups of this process permit, and the
// room in the buffer's directory; and what helps where there is none.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>

namespace arctrace {

// Where buffers are if no other directory is named.
inline constexpr const char* kBufferDirectory = "/dev/shm";

// A source of memory.
struct MemoryRoom {
  uint64_t total = UINT64_MAX;  // bytes; UINT64_MAX: it sets no limit
  uint64_t free = UINT64_MAX;   // what is not used, or could be had back at once
  std::string name;             // as a message calls it
};

// The tightest of the memory limits of the process' cgroups (version 1 and 2) and of
// those around them. `root`: the directory that stands for "/", which tests replace.
MemoryRoom cgroup_room(const std::string& root = "/");

// The file system of a directory: without a limit if it has none, or is not there.
MemoryRoom directory_room(const std::string& directory);

// Whether the directory's files are in memory. True also if it is not there.
bool is_in_memory(const std::string& directory);

// The status for a buffer of `size` bytes whose file could not be made in `directory`:
// why, and what helps. `error`: errno.
absl::Status explain_directory(int error, uint64_t size, const std::string& directory);

// "; as root: mount ...": the commands that help, each after a semicolon.
std::string directory_remedies(const std::string& directory, bool is_too_small);

// "64M", as options have it.
std::string size_text(uint64_t bytes);

}  // namespace arctrace
