// The memory of this process: what is mapped where, its protection, and the main thread's
// stack.
#pragma once

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>

#include "src/base/raw_syscall.hpp"
#include "src/hook_abi/shim_types.h"
#include "writer_shim/base/glibc.hpp"

namespace arctrace::shim {

// Calls visit(low, high) for each mapping of the process. False: they can't be read.
template <class Visit>
bool for_each_mapping(const Visit& visit) {
  const long fd = sys::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char bytes[512];
  uintptr_t numbers[2] = {0, 0};
  int part = 0;  // of the line: two numbers, and the rest
  long n;
  while ((n = raw_syscall(SYS_read, fd, sys::pointer_argument(bytes), sizeof bytes)) >
         0) {
    for (long i = 0; i < n; ++i) {
      const char letter = bytes[i];
      if (letter == '\n') {
        // Nothing in the upper half of the address space is the process' own.
        if (static_cast<intptr_t>(numbers[1]) > 0) visit(numbers[0], numbers[1]);
        numbers[0] = numbers[1] = 0;
        part = 0;
      } else if (part < 2 && (letter == '-' || letter == ' ')) {
        ++part;
      } else if (part < 2) {
        const int digit = letter >= 'a' ? letter - 'a' + 10 : letter - '0';
        numbers[part] = numbers[part] << 4 | static_cast<uintptr_t>(digit);
      }
    }
  }
  sys::close(static_cast<int>(fd));
  return n == 0;
}

// Sets the protection (PROT_*) of all pages that [address, address + size) touches.
// False: the kernel refuses.
inline bool protect(uintptr_t address, size_t size, int protection) {
  const uintptr_t page = getauxval(AT_PAGESZ);
  const uintptr_t first = address & ~(page - 1);
  const uintptr_t end = (address + size + page - 1) & ~(page - 1);
  return raw_syscall(SYS_mprotect, static_cast<long>(first),
                     static_cast<long>(end - first), protection) == 0;
}

// Makes memory of ours, whole pages that are mapped privately, executable and no longer
// writable. Under PR_SET_MDWE what was ever writable may not become executable: then the
// pages are mapped from a file that has the same bytes. Not under a seccomp filter, which
// might end the program for that.
inline bool make_executable(uintptr_t low, size_t size) {
  if (protect(low, size, PROT_READ | PROT_EXEC)) return true;
  if (raw_syscall(SYS_prctl, PR_GET_SECCOMP) != 0) return false;
  const long file =
      raw_syscall(SYS_memfd_create, sys::pointer_argument("arctrace-jumps"), MFD_CLOEXEC);
  if (file < 0) return false;
  const auto at = static_cast<long>(low);
  const auto wanted = static_cast<long>(size);
  const bool is_mapped = raw_syscall(SYS_pwrite64, file, at, wanted, 0) == wanted &&
                         raw_syscall(SYS_mmap, at, wanted, PROT_READ | PROT_EXEC,
                                     MAP_PRIVATE | MAP_FIXED, file, 0) == at;
  sys::close(static_cast<int>(file));
  return is_mapped;
}

// Whether that is possible, which a page of its own shows.
inline bool can_make_executable() {
  const uintptr_t page = getauxval(AT_PAGESZ);
  void* const probe =
      sys::map(page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (probe == nullptr) return false;
  const bool can = make_executable(reinterpret_cast<uintptr_t>(probe), page);
  raw_syscall(SYS_munmap, sys::pointer_argument(probe), static_cast<long>(page));
  return can;
}

// The main thread's stack, as far as it may grow by the present limit.
inline arctrace_shim_memory main_thread_stack() {
  // The kernel keeps at least this much below it free of mappings, whatever its limit is.
  // Further down than kStackMax, it need not be distinguished from other stacks.
  constexpr uintptr_t kStackGapMin = uintptr_t{128} << 20;
  constexpr uintptr_t kStackMax = uintptr_t{64} << 30;
  const auto high = reinterpret_cast<uintptr_t>(__libc_stack_end);
  rlimit64 limit{};
  if (raw_syscall(SYS_prlimit64, 0, RLIMIT_STACK, 0, sys::pointer_argument(&limit)) !=
      0) {
    limit.rlim_cur = 0;
  }
  uintptr_t size = limit.rlim_cur;
  if (size < kStackGapMin) size = kStackGapMin;
  if (size > kStackMax) size = kStackMax;
  return {high - size, high};
}

}  // namespace arctrace::shim
