// The files that a process has mapped, and how the recorder opens them: the process may
// have another root directory, or be in another mount namespace.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace arctrace::recorder {

// A file that a process has mapped, or a part of it.
struct Mapping {
  uint64_t low = 0;
  uint64_t high = 0;
  bool is_executable = false;
  uint64_t offset = 0;  // in the file
  uint64_t device = 0;  // as makedev() has it
  uint64_t inode = 0;
  // As /proc/PID/maps has it: from the recorder's root directory if the file can be
  // reached from there, else from the root of its file system. The kernel appends
  // " (deleted)" if the file is gone.
  std::string path;
};

std::vector<Mapping> read_mappings(pid_t pid);

// The path by which the recorder opens the mapped file; empty: it cannot.
std::string path_to(pid_t pid, const Mapping& mapping);

// The same for the file that the process has mapped at this address.
std::string path_to_mapped(pid_t pid, uint64_t address);

// Whether the process finds at `path` the file that the recorder finds there.
bool sees_same_file(pid_t pid, const std::string& path);

// A library that a process has loaded.
struct LoadedLibrary {
  std::string path;  // as in Mapping; empty: it has not loaded it
  uint64_t low = 0;  // address of the file's first byte
  std::string file;  // path_to() the library
};

// The library `name` of the process (as "libc.so.6"), or of versions before it had that
// name (as "libc-2.31.so" for libc.so.6).
LoadedLibrary find_library(pid_t pid, const std::string& name);

// A library that has the shim's name and that the process has loaded, if it is not the
// file `shim`, or has been removed since. Empty: there is none.
std::string find_other_shim(pid_t pid, const std::string& shim);

// Memory [low, high) that holds code.
struct CodeMemory {
  uint64_t low;
  uint64_t high;
};

// The code of arctrace's libraries in the process.
std::vector<CodeMemory> find_own_code(pid_t pid);

// The address in the process of the function `name`, as the library's table of dynamic
// symbols has it; 0: there is none.
uint64_t find_function(const LoadedLibrary& library, const std::string& name);

// The code of the process' libc to which a function that a thread runs for us returns
// (ReturnFrame); 0: it was not found.
uint64_t find_system_call(pid_t pid, const LoadedLibrary& libc);
uint64_t find_signal_return(pid_t pid, const LoadedLibrary& libc);

}  // namespace arctrace::recorder
