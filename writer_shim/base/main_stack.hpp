// Where the main thread has its stack.
#pragma once

#include <sys/resource.h>

#include <cstdint>

#include "src/base/raw_syscall.hpp"
#include "src/hook_abi/shim_types.h"
#include "writer_shim/base/glibc.hpp"

namespace arctrace::shim {

// As far as it may grow by the present limit.
inline arctrace_shim_memory main_thread_stack() {
  // The kernel keeps at least this much below it free of mappings, whatever its limit is.
  // The stack need not be told from others beyond the upper bound.
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
