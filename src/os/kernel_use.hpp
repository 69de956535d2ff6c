// Keeps which of our system calls the seccomp filters of this process permit, and makes
// those that are needed where most are forbidden.
//
// A filter may answer one of our system calls with a signal or show it to a supervisor,
// so that the program would notice the tracer. Therefore no thread makes system calls for
// a use that a filter forbids. src/os/seccomp_filter.hpp judges the filters; a process
// without filters, such as the recorder, may make all calls.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arctrace {

enum KernelUse : uint32_t {
  // All calls that a process makes to join a session and to stay in it. A process for
  // which this is forbidden is called confined.
  kOrdinaryUse = 1,
  // The calls for a thread that libc begins, in a process that has joined or was forked
  // by one that has.
  kThreadUse = 2,
  // Whether a program that is about to be executed exists.
  kFileCheckUse = 4,
  // Whether memory can be read (ReadableMemory).
  kMemoryProbeUse = 8,
};
constexpr uint32_t kAllUses = 15;

// Counts each of the `uses` as forbidden once more, or once less.
void forbid_uses(uint32_t uses);
void take_back_forbidden(uint32_t uses);

// Whether all of our system calls are permitted.
bool may_call_kernel();

// Whether the system calls for `use` are permitted.
bool may_use_kernel(KernelUse use);

// Notes the id of the calling thread, which libc has just begun.
void set_libc_thread_id(uint32_t tid);

// The calling thread's id. Asks the kernel; where system calls are forbidden, returns the
// id that set_libc_thread_id() noted, or 0.
uint32_t thread_id();

// Checks whether memory of this process can be read, where a pointer of the traced
// program may be invalid. Makes one system call for each page, except for the page that
// it asked for last. The call is rt_sigprocmask, which hardly any seccomp filter forbids;
// where one does (kMemoryProbeUse), all memory is taken to be readable. Another thread
// may still unmap the memory after the check.
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
