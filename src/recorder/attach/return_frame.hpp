// What a stopped thread needs on its stack to go on by itself where it was stopped, even
// if we end meanwhile: the frame of a signal handler that returns.
#pragma once

#include <sys/user.h>

#include <cstdint>
#include <string>
#include <vector>

namespace arctrace {

// Addresses of instructions in the process' libc.
struct ReturnCode {
  uint64_t system_call;    // a system call, after which the code returns
  uint64_t signal_return;  // sets the number of rt_sigreturn, and makes that call
};

struct StoppedState {
  user_regs_struct registers{};
  std::vector<char> vectors;  // as PTRACE_GETREGSET has them (NT_X86_XSTATE)
  uint64_t signal_mask = 0;
};

// The words of a stack that lies below `end`, and where a called function finds its
// return address. It returns to a system call, where a tracer stops it; if there is none,
// to the state before. The system call that the thread was in is then made again, from
// its beginning.
struct ReturnFrame {
  uint64_t slot;      // address of the return address: 8 more than a multiple of 16
  std::string bytes;  // from `slot` on
};
ReturnFrame make_return_frame(const StoppedState& state, const ReturnCode& code,
                              uint64_t end);

}  // namespace arctrace
