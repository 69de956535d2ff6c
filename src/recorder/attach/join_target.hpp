// Reads from /proc what a process that is to be joined is, and decides whether it can be
// joined.
#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace arctrace::recorder {

// A library that a process has loaded.
struct LoadedLibrary {
  std::string path;  // as the process sees it; empty: it has not loaded it
  uint64_t low = 0;  // address of the file's first byte
};

struct JoinTarget {
  pid_t pid = 0;
  std::string name;  // the kernel's, of its main thread
  LoadedLibrary libc;
  LoadedLibrary libdl;  // before glibc 2.34; empty: none
};

// Examines the process `pid`, which is to load the library `shim` and to open the buffer
// `session`. Error: why that cannot be, with what to do; nothing was done to it.
absl::StatusOr<JoinTarget> examine_process(pid_t pid, const std::string& shim,
                                           const std::string& session);

// Ok: the process runs. Error: it has ended, or is about to, which may be why something
// else failed.
absl::Status ended_status(pid_t pid);

// The library `name` of the process (as "libc.so.6"), or of versions before it had that
// name (as "libc-2.31.so" for libc.so.6). Reads /proc/PID/maps.
LoadedLibrary find_library(pid_t pid, const std::string& name);

// The path of the file that the process has mapped at this address, as it sees it; empty:
// there is none. The kernel says of one that is gone that it is deleted.
std::string mapped_file(pid_t pid, uint64_t address);

// Memory [low, high) that holds code.
struct CodeMemory {
  uint64_t low;
  uint64_t high;
};

// The code of arctrace's libraries in the process.
std::vector<CodeMemory> find_own_code(pid_t pid);

// The address in the process of the function `name`, as the library's table of dynamic
// symbols has it; 0: there is none.
uint64_t find_function(pid_t pid, const LoadedLibrary& library, const std::string& name);

// The code of the process' libc to which a function that a thread runs for us returns
// (ReturnFrame); 0: it was not found.
uint64_t find_system_call(const JoinTarget& target);
uint64_t find_signal_return(const JoinTarget& target);

}  // namespace arctrace::recorder
