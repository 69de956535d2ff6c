// The memory that the process has mapped, as the kernel lists it.
#pragma once

#include <fcntl.h>

#include <cstdint>

#include "src/base/raw_syscall.hpp"

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

}  // namespace arctrace::shim
