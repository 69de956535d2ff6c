// Writes the message and ends the process by system calls alone.
#include "src/os/stop_program.hpp"

#include <signal.h>

#include <cstddef>

#include "src/base/raw_syscall.hpp"

namespace arctrace {
namespace {

class Line {
 public:
  void add(const char* text) {
    for (; *text != '\0'; ++text) add(*text);
  }
  void add_hexadecimal(uint64_t number) {
    unsigned shift = 60;
    while (shift > 0 && number >> shift == 0) shift -= 4;
    add("0x");
    for (;; shift -= 4) {
      add("0123456789abcdef"[number >> shift & 15]);
      if (shift == 0) break;
    }
  }
  void write_to_stderr() {
    text_[size_++] = '\n';
    raw_syscall(SYS_write, 2, sys::pointer_argument(text_), static_cast<long>(size_));
  }

 private:
  void add(char letter) {
    if (size_ + 1 < sizeof text_) text_[size_++] = letter;
  }

  char text_[512];
  size_t size_ = 0;
};

// The argument of rt_sigaction; all zeros: the default action.
struct KernelSigaction {
  uint64_t words[4];
};

}  // namespace

void stop_program(const MessagePart* parts, uint32_t count) {
  Line line;
  line.add("arctrace: ");
  for (uint32_t i = 0; i < count; ++i) {
    line.add(parts[i].text);
    if (parts[i].has_number) line.add_hexadecimal(parts[i].number);
  }
  line.write_to_stderr();
  const KernelSigaction by_default{};
  const uint64_t unblocked = sys::signal_bit(SIGABRT);
  raw_syscall(SYS_rt_sigaction, SIGABRT, sys::pointer_argument(&by_default), 0,
              sizeof(uint64_t));
  raw_syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, sys::pointer_argument(&unblocked), 0,
              sizeof unblocked);
  raw_syscall(SYS_tgkill, sys::getpid(), sys::gettid(), SIGABRT);
  for (;;) raw_syscall(SYS_exit_group, 128 + SIGABRT);
}

}  // namespace arctrace
