// Replaces "return, filler" by a jump of five bytes, in two stores.
#include "writer_shim/arch/function_jump.hpp"

#include <sys/mman.h>

#include "src/base/memory.hpp"
#include "src/base/shared_atomics.hpp"
#include "writer_shim/arch/x86_64/instructions.hpp"
#include "writer_shim/base/page_protection.hpp"

namespace arctrace::shim {
namespace {

constexpr size_t kPatchBlock = 16;  // functions are aligned to it, filled up with NOPs

struct Code {
  unsigned char bytes[kPatchBlock];
};

// Turns "return, filler" at `from` into a jump to `target`. False: the code is something
// else, or the target is too far away.
bool make_jump(Code& code, uintptr_t from, uintptr_t target) {
  unsigned char* const end = code.bytes + sizeof code.bytes;
  unsigned char* at = code.bytes;
  if (from % kPatchBlock != 0) return false;
  if (__builtin_memcmp(at, kEndbr64, sizeof kEndbr64) == 0) at += sizeof kEndbr64;
  if (*at != kReturn) return false;
  for (const unsigned char* filler = at + 1; filler < at + kJumpSize;) {
    const size_t length = filler_length(filler, end);
    if (length == 0) return false;
    filler += length;
  }
  const uintptr_t jump_end = from + static_cast<uintptr_t>(at - code.bytes) + kJumpSize;
  const auto distance = static_cast<int64_t>(target - jump_end);
  if (distance != static_cast<int32_t>(distance)) return false;
  const auto short_distance = static_cast<int32_t>(distance);
  *at = kJump;
  __builtin_memcpy(at + 1, &short_distance, sizeof short_distance);
  return true;
}

}  // namespace

bool make_function_jump(uintptr_t from, uintptr_t target) {
  Code code;
  copy_bytes(&code, reinterpret_cast<const void*>(from), sizeof code);
  // The page stays executable, because it holds other functions too.
  if (!make_jump(code, from, target) ||
      !protect(from, sizeof code, PROT_READ | PROT_WRITE | PROT_EXEC)) {
    return false;
  }
  // First the bytes after the return, which no thread runs, then those with the jump's
  // first byte, each in one store.
  uint64_t halves[2];
  __builtin_memcpy(halves, code.bytes, sizeof halves);
  auto* words = reinterpret_cast<uint64_t*>(from);
  IpcAtomics::store_release(words[1], halves[1]);
  IpcAtomics::store_release(words[0], halves[0]);
  protect(from, sizeof code, PROT_READ | PROT_EXEC);
  return true;
}

}  // namespace arctrace::shim
