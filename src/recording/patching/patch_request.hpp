// Chooses the functions of a module that are patched, and says why others are skipped.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "src/recorder/patch_analysis/module_code.hpp"
#include "src/recorder/patch_image/patch_image.hpp"
#include "src/recording/patching/module_code_file.hpp"
#include "src/shim_protocol/options.hpp"

namespace arctrace::recording {

// Functions of a library that are skipped, though they could be patched.

// These are skipped: functions that the loader calls to choose an implementation (ifunc);
// functions that the shim hooks in another way, because they return twice or never,
// examine their caller, abandon frames or are about locks; and in libc, all functions
// that it does not offer to other modules, which may run in threads that are not set up
// yet, or not any more, and those that run in a spawned child with its parent's memory.
class LibraryFunctions {
 public:
  // `path`: a library's file, whose code is `code`. If it cannot be read, no names are
  // known.
  LibraryFunctions(const std::string& path, const recorder::ModuleCode& code);

  // `function`: the address of one in the file.
  bool is_special(uint64_t function) const {
    return special_.contains(function) || (is_libc_ && !offered_.contains(function));
  }

 private:
  bool is_libc_ = false;
  absl::flat_hash_set<uint64_t> special_;
  absl::flat_hash_set<uint64_t> offered_;  // functions that libc offers
};

// `planned`: the module of the file at `path`, which must stay. `library`: its name as
// patterns ask for it; empty: it is the program. `bias`: the distance from its addresses
// to those of the process.
recorder::PatchRequest patch_request(const shim::ShimOptions& options,
                                     const PlannedModule& planned,
                                     const std::string& path, const std::string& library,
                                     uint64_t bias);

// The command's part in patching a program's functions (writer_shim/patch/ has the
// shim's): it analyses the program, chooses functions by the options, and makes the image
// that the shim has the loader map.

// `arguments`: those after shim::kPatchVerb (src/shim_protocol/patching.hpp). Prints
// nothing, because the standard streams are the program's. Returns the exit status.
int make_patches(const std::vector<std::string>& arguments);

}  // namespace arctrace::recording
