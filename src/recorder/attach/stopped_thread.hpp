// Stops a thread of another process for a short time, and has it run functions for us
// (ptrace). Also reads that process' memory, and has the frame by which the thread goes
// on if this process ends meanwhile.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace arctrace::recorder {

// Reads memory of a process that is joined. Returns whether all of it was read; if not,
// errno says why.
inline bool read_memory(pid_t pid, uint64_t address, void* to, size_t size) {
  const iovec local{to, size};
  const iovec remote{reinterpret_cast<void*>(static_cast<uintptr_t>(address)), size};
  return ::process_vm_readv(pid, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size);
}

// The frame of a signal handler that returns. With it on its stack, a stopped thread goes
// on by itself where it was stopped, even if this process ends meanwhile.

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

// The words for a stack that ends at `end`, and the slot in which a called function finds
// its return address. The function returns to a system call, where a tracer stops it;
// without a tracer it returns to the state before. The system call that the thread was in
// is then made again, from its beginning.
struct ReturnFrame {
  uint64_t slot;      // address of the return address: 8 more than a multiple of 16
  std::string bytes;  // from `slot` on
};
ReturnFrame make_return_frame(const StoppedState& state, const ReturnCode& code,
                              uint64_t end);

// A stopped thread. When the object is gone, the thread's registers, signal mask and
// vectors are as they were, and the system call that it was in is made again. If this
// process ends before, by SIGKILL for example, or a function takes too long, the thread
// returns to that state by itself.
class StoppedThread {
 public:
  // Stops the thread in two steps, so that many threads can be stopped at once. Error: it
  // has ended, or may not be stopped.
  static absl::StatusOr<StoppedThread> ask_to_stop(pid_t tid);
  absl::Status await_stop();
  // Whether await_stop() would return at once.
  bool has_stopped() const;

  StoppedThread(StoppedThread&& other) noexcept;
  StoppedThread& operator=(StoppedThread&&) = delete;
  StoppedThread(const StoppedThread&) = delete;
  StoppedThread& operator=(const StoppedThread&) = delete;
  ~StoppedThread();

  pid_t tid() const { return tid_; }
  std::chrono::steady_clock::time_point stopped_at() const { return stopped_at_; }
  // The number of the system call in which the thread was stopped; -1: it was in none.
  long system_call_number() const { return static_cast<long>(state_.registers.orig_rax); }
  // The thread's program counter when it was stopped, also while it runs a function for
  // us.
  uint64_t program_counter() const { return state_.registers.rip; }
  uint64_t stack_pointer() const { return state_.registers.rsp; }

  // Lets the thread run on for so long, and stops it again.
  absl::Status run_for(std::chrono::microseconds time);

  // To be called once before call(): signals are kept from the thread from now on.
  absl::Status borrow(const ReturnCode& code);
  // To be called before each step of several calls. Error: the thread was stopped 10 s
  // ago, which is the most that it is kept from its own work.
  absl::Status check_time() const;
  // Calls the function at `address`, on the stack that ends at `stack`; 0: on its own
  // stack. Error: the function raised a signal, or has not returned 10 s after the thread
  // was stopped, or after a second, if that is later. Then the thread goes on, the stack
  // has to stay, and no other function can be called.
  absl::StatusOr<uint64_t> call(uint64_t address, const std::array<uint64_t, 6>& args,
                                uint64_t stack);
  absl::Status write(uint64_t address, absl::Span<const char> bytes) const;
  absl::StatusOr<std::string> read_text(uint64_t address) const;  // up to 4095 bytes
  absl::StatusOr<int32_t> read_word(uint64_t address) const;

 private:
  explicit StoppedThread(pid_t tid) : tid_(tid) {}
  absl::Status run_to_system_call();
  absl::Status set(const user_regs_struct& registers) const;
  absl::Status lost() const;

  pid_t tid_;  // 0: moved from
  std::chrono::steady_clock::time_point stopped_at_ = std::chrono::steady_clock::now();
  StoppedState state_;
  bool is_asked_ = false;  // a stop was asked for and has not been seen yet
  bool is_borrowed_ = false;
  bool is_running_ = false;       // a function that has not returned in time is running
  bool are_all_stopped_ = false;  // by a signal, as far as the last stop told
  ReturnCode code_{};
};

}  // namespace arctrace::recorder
