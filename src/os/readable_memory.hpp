// Checks whether memory of this process can be read, where a pointer of the traced
// program may be invalid.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arctrace {

// Makes one system call for each page, except for the page that it asked for last. The
// call is rt_sigprocmask, which hardly any seccomp filter forbids; where one does
// (src/os/kernel_use.hpp, kMemoryProbeUse), all memory is taken to be readable. Another
// thread may still unmap the memory after the check.
class ReadableMemory {
 public:
  // Whether all `size` bytes can be read.
  bool has(const void* address, size_t size);

  // The length of a text, at most `limit`; -1: it can't be read up to its end.
  long text_length(const char* text, size_t limit);

 private:
  bool has_page(uintptr_t page);

  uintptr_t last_page_ = 0;  // known to be readable; 0: none
};

}  // namespace arctrace
