// Whether memory of this process can be read, where an address may be wild.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arctrace {

// Asks the kernel for each page that it has not just asked for. Another thread may unmap
// it at any time. One system call, rt_sigprocmask, which hardly any seccomp filter
// forbids (src/os/kernel_use.hpp, kMemoryProbeUse); where one does, all is taken to
// be readable.
class ReadableMemory {
 public:
  bool has(const void* place, size_t size);

  // Length of a text that can be read up to there, at most `limit`; -1: it can't.
  long text_length(const char* text, size_t limit);

 private:
  bool has_page(uintptr_t page);

  uintptr_t last_page_ = 0;  // known to be readable; 0: none
};

}  // namespace arctrace
