// Changes the protection of memory that the loader has made read-only.
#pragma once

#include <sys/auxv.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include "src/base/raw_syscall.hpp"

namespace arctrace::shim {

// Sets the protection (PROT_*) of all pages that [address, address + size) touches.
// False: the kernel refuses.
inline bool protect(uintptr_t address, size_t size, int protection) {
  const uintptr_t page = getauxval(AT_PAGESZ);
  const uintptr_t first = address & ~(page - 1);
  const uintptr_t end = (address + size + page - 1) & ~(page - 1);
  return raw_syscall(SYS_mprotect, static_cast<long>(first),
                     static_cast<long>(end - first), protection) == 0;
}

}  // namespace arctrace::shim
