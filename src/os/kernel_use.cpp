// Counts forbidden uses of the kernel, and checks memory by a system call that hardly any
// filter forbids.
#include "src/os/kernel_use.hpp"

#include <errno.h>

#include "src/base/memory.hpp"
#include "src/base/raw_syscall.hpp"
#include "src/base/shared_atomics.hpp"

namespace arctrace {

namespace {

// For each use: how often it was forbidden, less how often that was revoked.
uint32_t ordinary_forbidden;
uint32_t threads_forbidden;
uint32_t file_checks_forbidden;
uint32_t memory_probes_forbidden;

constexpr KernelUse kUses[] = {kOrdinaryUse, kThreadUse, kFileCheckUse, kMemoryProbeUse};

uint32_t& count_of(KernelUse use) {
  switch (use) {
    case kOrdinaryUse:
      return ordinary_forbidden;
    case kThreadUse:
      return threads_forbidden;
    case kFileCheckUse:
      return file_checks_forbidden;
    default:
      return memory_probes_forbidden;
  }
}

void add_to(uint32_t uses, uint32_t number) {
  for (const KernelUse use : kUses) {
    if ((uses & use) != 0) IpcAtomics::fetch_add_relaxed(count_of(use), number);
  }
}

}  // namespace

void forbid_uses(uint32_t uses) { add_to(uses, 1); }

void take_back_forbidden(uint32_t uses) { add_to(uses, ~uint32_t{0}); }  // adds -1

bool may_call_kernel() { return IpcAtomics::load_relaxed(ordinary_forbidden) == 0; }

bool may_use_kernel(KernelUse use) {
  return may_call_kernel() || IpcAtomics::load_relaxed(count_of(use)) == 0;
}

namespace {

// 0: libc did not begin the thread, or began it before the shim was loaded.
thread_local constinit uint32_t libc_thread_id = 0;

}  // namespace

void set_libc_thread_id(uint32_t tid) { libc_thread_id = tid; }

uint32_t thread_id() { return may_call_kernel() ? sys::gettid() : libc_thread_id; }

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
