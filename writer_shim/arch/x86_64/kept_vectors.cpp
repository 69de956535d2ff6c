// XSAVE and XRSTOR, of the parts that the processor and the kernel have; without them the
// code is just called.
#include "writer_shim/arch/x86_64/kept_vectors.hpp"

#include <cpuid.h>

#include "src/base/shared_atomics.hpp"
#include "writer_shim/arch/x86_64/vector_state.h"

uint32_t arctrace_vector_parts;
uint64_t arctrace_vector_bytes;

namespace arctrace::shim {

// Finds the parts of the vector state that may hold arguments, and the size of their
// copy.
bool can_keep_vectors() {
  // Two threads may be here: one that sees the size sees the parts.
  if (IpcAtomics::load_acquire(arctrace_vector_bytes) != 0) return true;
  constexpr uint32_t kParts = 1U << 1 | 1U << 2 | 1U << 5 | 1U << 6 | 1U << 7;
  constexpr uint32_t kLeaf = 0xd;
  constexpr uint32_t kPartsCount = 8;
  uint32_t eax = 0;
  uint32_t ebx = 0;
  uint32_t ecx = 0;
  uint32_t edx = 0;
  // As few questions as possible, because a hypervisor answers each in microseconds.
  if (static_cast<uint32_t>(__get_cpuid_max(0, nullptr)) < kLeaf) return false;
  __cpuid(1, eax, ebx, ecx, edx);
  if ((ecx & bit_OSXSAVE) == 0) return false;
  uint32_t enabled = 0;
  asm("xgetbv" : "=a"(enabled), "=d"(edx) : "c"(0));
  arctrace_vector_parts = enabled & kParts;
  uint64_t bytes = ARCTRACE_VECTOR_HEADER_END;
  for (uint32_t part = 2; part < kPartsCount; ++part) {
    if ((arctrace_vector_parts & 1U << part) == 0) continue;
    __cpuid_count(kLeaf, part, eax, ebx, ecx, edx);
    if (bytes < uint64_t{ebx} + eax) bytes = uint64_t{ebx} + eax;
  }
  IpcAtomics::store_release(arctrace_vector_bytes, bytes);
  return true;
}

uintptr_t call_keeping_vectors(uintptr_t (*function)(uintptr_t, uint32_t),
                               uintptr_t first, uint32_t second) {
  return can_keep_vectors() ? arctrace_keep_vectors(function, first, second)
                            : function(first, second);
}

}  // namespace arctrace::shim
