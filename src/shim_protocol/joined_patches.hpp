// How the recorder and the shim patch functions of a program that runs: the shim says of
// which modules functions are wanted, the recorder makes an image for each
// (patch_table.hpp) and hands it over, and the shim maps it and notes the jumps that are
// to be written (code_changes.hpp). Both sides come from one build, so this is no stable
// interface.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/shim_protocol/patch_table.hpp"

namespace arctrace::shim {

inline constexpr size_t kModuleNameMax = 60;

// A module that is loaded. Addresses are those of the process.
struct WantedModule {
  uint64_t bias;  // from addresses in its file
  uint64_t low;   // of its first byte
  uint32_t is_program;
  // Its file's name as patterns ask for it, zero-terminated; empty: the program's. A
  // longer one is cut off.
  char name[kModuleNameMax];
};

// The shim exports it as arctrace_wanted_modules.
struct WantedModules {
  uint32_t count;
  uint32_t filler;
  WantedModule modules[kPatchedModulesMax];
};

// Before the bytes of an image that is handed over, in memory of the process.
struct OfferedPatches {
  uint64_t low;      // of the module
  uint64_t size;     // of the image that follows
  uint32_t is_last;  // 0: it is made again if the addresses that it is for are taken
  uint32_t filler;
};

}  // namespace arctrace::shim
