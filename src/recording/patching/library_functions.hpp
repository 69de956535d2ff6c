// Which functions of a library are left alone, though they could be patched.
#pragma once

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "src/recorder/patch_analysis/module_code.hpp"

namespace arctrace::recording {

// They are: those that the loader calls to choose an implementation (ifunc); those that
// the shim hooks in a way of their own, because they return twice or never, look at their
// caller, leave frames or are about locks; and of libc all that it does not offer to
// other modules, which may run in threads that are not set up yet, or not any more, and
// those that run in a spawned child with its parent's memory.
class LibraryFunctions {
 public:
  // `path`: a library's file, whose code is `code`. If it cannot be read, nothing is
  // known of names.
  LibraryFunctions(const std::string& path, const ModuleCode& code);

  // `function`: the address of one in the file.
  bool is_special(uint64_t function) const {
    return special_.contains(function) || (is_libc_ && !offered_.contains(function));
  }

 private:
  bool is_libc_ = false;
  absl::flat_hash_set<uint64_t> special_;
  absl::flat_hash_set<uint64_t> offered_;  // of libc
};

}  // namespace arctrace::recording
