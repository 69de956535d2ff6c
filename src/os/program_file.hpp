// Finds out from a program's file whether and why the program can't be traced. The
// recorder checks the command in this way, and a traced process a program that it is
// about to execute.
#pragma once

#include <limits.h>

#include <cstdint>

#include "src/hook_abi/shim_types.h"

namespace arctrace {

// A program's file, found as libc's execvp() finds it. Calls nothing of libc but
// getenv(); is async-signal safe; does not change errno.
class FoundProgram {
 public:
  explicit FoundProgram(const arctrace_shim_program& named);
  FoundProgram(const FoundProgram&) = delete;
  FoundProgram& operator=(const FoundProgram&) = delete;

  int directory() const { return directory_; }  // as in arctrace_shim_program
  const char* path() const { return path_; }    // null: not found

  // Enum arctrace_untraced; 0 if the program can be traced or its file can't be read. For
  // a script, the answer is that of its interpreter.
  uint32_t why_untraceable() const;

 private:
  bool look_up(const char* name);

  int directory_;
  const char* path_;
  char found_path_[PATH_MAX];
};

}  // namespace arctrace
