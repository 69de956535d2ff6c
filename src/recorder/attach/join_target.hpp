// Reads from /proc what a process that is to be joined is, and decides whether it can be
// joined.
#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <string>

#include "src/recorder/attach/process_files.hpp"

namespace arctrace::recorder {

struct JoinTarget {
  pid_t pid = 0;
  std::string name;  // the kernel's, of its main thread
  LoadedLibrary libc;
  LoadedLibrary libdl;  // before glibc 2.34; empty: none
  // Whether it finds the shim and the buffer at their paths. Else the recorder hands it
  // descriptors of them, as to a process in a container.
  bool sees_files = true;
};

// Examines the process `pid`, which is to load the library `shim` and to open the buffer
// `session`. Error: why that cannot be, with what to do; nothing was done to it.
absl::StatusOr<JoinTarget> examine_process(pid_t pid, const std::string& shim,
                                           const std::string& session);

// Ok: the process runs. Error: it has ended, or is about to, which may be why something
// else failed.
absl::Status ended_status(pid_t pid);

}  // namespace arctrace::recorder
