// What is about to be executed, as far as it matters whether its loader can load the
// shim.
#pragma once

namespace arctrace::shim {

// A file as one of the exec functions names it.
struct ProgramFile {
  int folder;         // that `path` is relative to; the file itself, if path is ""
  const char* path;   // null: nothing is to be found
  bool is_looked_up;  // in PATH, unless it has a slash
};

// Whether the file, or what runs it as a script, has a loader of another machine or word
// size: that would say on standard error that it can't load us. False if it can't be
// read. Uses the stack only, and leaves errno alone.
__attribute__((noinline)) bool has_foreign_loader(const ProgramFile& file);

}  // namespace arctrace::shim
