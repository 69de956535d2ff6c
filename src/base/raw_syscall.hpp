// System calls without libc, whose wrappers may be interposed or instrumented by the
// traced program, set errno, or are cancellation points. Results are the kernel's: a
// negative errno on failure.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>

namespace arctrace {

inline long raw_syscall(long number, long a = 0, long b = 0, long c = 0, long d = 0,
                        long e = 0, long f = 0) {
#if defined(__x86_64__)
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc 0"
               : "+r"(x0)
               : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
               : "memory");
  return x0;
#else
#error "arctrace runs on x86-64 and aarch64"
#endif
}

namespace sys {

inline long pointer_argument(const void* pointer) {
  return static_cast<long>(reinterpret_cast<uintptr_t>(pointer));
}
inline long open(const char* path, int flags) {
  return raw_syscall(SYS_openat, AT_FDCWD, pointer_argument(path), flags);
}
inline long close(int fd) { return raw_syscall(SYS_close, fd); }
inline long pread(int fd, void* to, size_t size, uint64_t offset) {
  return raw_syscall(SYS_pread64, fd, pointer_argument(to), static_cast<long>(size),
                     static_cast<long>(offset));
}
inline long stat_fd(int fd, struct stat* out) {
  return raw_syscall(SYS_fstat, fd, pointer_argument(out));
}
inline long readlink(const char* path, char* to, size_t size) {
  return raw_syscall(SYS_readlinkat, AT_FDCWD, pointer_argument(path),
                     pointer_argument(to), static_cast<long>(size));
}
// The mapped address, or null.
inline void* map(size_t size, int protection, int flags, int fd) {
  const long result =
      raw_syscall(SYS_mmap, 0, static_cast<long>(size), protection, flags, fd, 0);
  return result < 0 && result > -4096 ? nullptr : reinterpret_cast<void*>(result);
}
inline long advise(void* address, size_t size, int advice) {
  return raw_syscall(SYS_madvise, pointer_argument(address), static_cast<long>(size),
                     advice);
}
constexpr uint64_t signal_bit(int signal) { return uint64_t{1} << (signal - 1); }

// Blocks the calling thread's signals as long as it lives, except for those that the
// thread's own instructions raise, such as SIGSEGV.
class SignalsBlocked {
 public:
  SignalsBlocked() { change(kMask, &before_); }
  ~SignalsBlocked() { change(before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  static constexpr uint64_t kMask =
      ~(signal_bit(SIGSEGV) | signal_bit(SIGBUS) | signal_bit(SIGILL) |
        signal_bit(SIGFPE) | signal_bit(SIGTRAP) | signal_bit(SIGSYS));
  static void change(uint64_t mask, uint64_t* before) {
    raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, pointer_argument(&mask),
                pointer_argument(before), sizeof mask);
  }

  uint64_t before_ = 0;
};

inline uint32_t gettid() { return static_cast<uint32_t>(raw_syscall(SYS_gettid)); }
inline uint32_t getpid() { return static_cast<uint32_t>(raw_syscall(SYS_getpid)); }
inline uint32_t getppid() { return static_cast<uint32_t>(raw_syscall(SYS_getppid)); }
inline uint32_t geteuid() { return static_cast<uint32_t>(raw_syscall(SYS_geteuid)); }

}  // namespace sys
}  // namespace arctrace
