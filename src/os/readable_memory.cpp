#include "src/os/readable_memory.hpp"

#include <errno.h>

#include "src/base/raw_syscall.hpp"
#include "src/os/kernel_use.hpp"

namespace arctrace {
namespace {

constexpr uintptr_t kPageSize = 4096;  // or a part of a page

}  // namespace

bool ReadableMemory::has_page(uintptr_t page) {
  if (page == last_page_ && page != 0) return true;
  // The kernel copies the mask before it checks the operation, which is invalid.
  constexpr long kNoOperation = -1;
  constexpr long kMaskSize = 8;
  if (raw_syscall(SYS_rt_sigprocmask, kNoOperation, static_cast<long>(page), 0,
                  kMaskSize) == -EFAULT) {
    return false;
  }
  last_page_ = page;
  return page != 0;  // the kernel takes page 0 for no mask at all
}

bool ReadableMemory::has(const void* address, size_t size) {
  const auto first = reinterpret_cast<uintptr_t>(address);
  if (size == 0 || !may_use_kernel(kMemoryProbeUse)) return true;
  if (first + size < first) return false;
  for (uintptr_t page = first & -kPageSize;; page += kPageSize) {
    if (!has_page(page)) return false;
    if (page == ((first + size - 1) & -kPageSize)) return true;
  }
}

long ReadableMemory::text_length(const char* text, size_t limit) {
  size_t length = 0;
  while (length < limit) {
    if (!has(text + length, 1)) return -1;
    const uintptr_t rest = -reinterpret_cast<uintptr_t>(text + length) & (kPageSize - 1);
    size_t end = length + (rest == 0 ? kPageSize : rest);
    if (end > limit) end = limit;
    for (; length < end; ++length) {
      if (text[length] == '\0') return static_cast<long>(length);
    }
  }
  return static_cast<long>(length);
}

}  // namespace arctrace
