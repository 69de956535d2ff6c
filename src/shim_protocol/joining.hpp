// The data that the recorder and the shim exchange in a process that is joined as it
// runs. Both sides come from one build, so this is no stable interface.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/shim_protocol/patching.hpp"

namespace arctrace::shim {

// The shim's function for joining returns the sum of this and the error number to the
// recorder that has it called. If the recorder is gone when the function returns, its
// result is taken for the number of a system call
// (src/recorder/attach/stopped_thread.hpp), which must not exist.
inline constexpr int kJoinResult = 0x20000000;

// A change of code that the shim asks the recorder to make in a program that runs: bytes
// that are to change while no thread of the program runs.

inline constexpr size_t kCodeChangeMax = 8;
inline constexpr uint32_t kCodeChangesMax = 1 << 20;

struct CodeChange {
  uint64_t at;
  uint32_t size;  // up to kCodeChangeMax; 0: the code is gone
  uint32_t filler;
  unsigned char was[kCodeChangeMax];  // the bytes that must be there
  unsigned char now[kCodeChangeMax];
};
static_assert(sizeof(CodeChange) == 32);

// The shim exports it as arctrace_code_changes.
struct CodeChanges {
  uint64_t changes;  // the address of the first CodeChange
  uint32_t count;    // up to kCodeChangesMax
  uint32_t filler;
};

// How the recorder and the shim patch functions of a program that runs: the shim says of
// which modules functions are wanted, the recorder makes an image for each
// (patching.hpp) and hands it over, and the shim maps it and notes the jumps that are to
// be written (CodeChanges).

inline constexpr size_t kModuleNameMax = 60;

// A module that is loaded. Addresses are those of the process.
struct WantedModule {
  uint64_t bias;  // the distance from addresses in its file
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

// The head before the bytes of an image that is handed over, in memory of the process.
struct OfferedPatches {
  uint64_t low;      // of the module
  uint64_t size;     // of the image that follows
  uint32_t is_last;  // 0: if its addresses are taken, the image is made again
  uint32_t filler;
};

}  // namespace arctrace::shim
