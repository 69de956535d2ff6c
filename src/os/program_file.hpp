// Why a program can't be traced, by its file: for the recorder, which says so of the
// command, and for traced processes that are about to execute it.
#pragma once

#include <limits.h>

#include <cstdint>

#include "src/hook_abi/shim_types.h"

namespace arctrace {

// A program's file, found as libc's execvp() finds it. No libc but for getenv();
// async-signal safe, errno stays.
class FoundProgram {
 public:
  explicit FoundProgram(const arctrace_shim_program& named);
  FoundProgram(const FoundProgram&) = delete;
  FoundProgram& operator=(const FoundProgram&) = delete;

  int directory() const { return directory_; }  // as in arctrace_shim_program
  const char* path() const { return path_; }    // null: there is none

  // Enum arctrace_untraced, or 0: nothing is in the way, or it can't be read. Of a
  // script: of what runs it.
  uint32_t why_untraceable() const;

 private:
  bool look_up(const char* name);

  int directory_;
  const char* path_;
  char room_[PATH_MAX];
};

}  // namespace arctrace
