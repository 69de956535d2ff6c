// What the shim tells the recorder about the code of a program that runs: bytes that are
// to change while none of its threads does. Both sides come from one build, so this is no
// stable interface.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arctrace::shim {

inline constexpr size_t kCodeChangeMax = 8;
inline constexpr uint32_t kCodeChangesMax = 1 << 20;

struct CodeChange {
  uint64_t at;
  uint32_t size;  // up to kCodeChangeMax; 0: the code is gone
  uint32_t filler;
  unsigned char was[kCodeChangeMax];  // what must stand there
  unsigned char now[kCodeChangeMax];
};
static_assert(sizeof(CodeChange) == 32);

// The shim exports it as arctrace_code_changes.
struct CodeChanges {
  uint64_t changes;  // the address of the first CodeChange
  uint32_t count;    // up to kCodeChangesMax
  uint32_t filler;
};

}  // namespace arctrace::shim
