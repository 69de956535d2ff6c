// A thread of another process that stands still for a short time, and runs functions of
// its own for us in between (ptrace).
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>
#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <string>

#include "src/recorder/attach/return_frame.hpp"

namespace arctrace {

// Its registers, signal mask and vectors are as they were when the object is gone, and
// the system call that it was in is made again. If this process ends before, by SIGKILL
// for example, or a function takes too long, the thread returns to them by itself.
class StoppedThread {
 public:
  // Stops the thread in two steps, so that many can be on their way at once. Error: it
  // has ended, or may not be stopped.
  static absl::StatusOr<StoppedThread> ask_to_stop(pid_t tid);
  absl::Status await_stop();
  // Whether await_stop() has not to wait.
  bool has_stopped() const;

  StoppedThread(StoppedThread&& other) noexcept;
  StoppedThread& operator=(StoppedThread&&) = delete;
  StoppedThread(const StoppedThread&) = delete;
  StoppedThread& operator=(const StoppedThread&) = delete;
  ~StoppedThread();

  pid_t tid() const { return tid_; }
  std::chrono::steady_clock::time_point stopped_at() const { return stopped_at_; }
  // The number of the system call in which it was stopped; -1: it was in none.
  long system_call_number() const { return static_cast<long>(state_.registers.orig_rax); }
  // Where it stood when it was stopped, also while it runs something for us.
  uint64_t program_counter() const { return state_.registers.rip; }
  uint64_t stack_pointer() const { return state_.registers.rsp; }

  // Lets the thread run on for so long, and stops it again.
  absl::Status run_for(std::chrono::microseconds time);

  // To be called once before call(): signals are kept from the thread from now on.
  absl::Status borrow(const ReturnCode& code);
  // Calls the function at `address`, on the stack that ends at `stack`; 0: on its own
  // stack. Error: a signal came of it, or it did not return in 10 s: then it goes on, the
  // stack has to stay, and no other function can be called.
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
  bool is_asked_ = false;  // and has not stopped yet, as far as we know
  bool is_borrowed_ = false;
  bool is_running_ = false;       // a function that has not returned in time
  bool are_all_stopped_ = false;  // by a signal, as far as the last stop told
  ReturnCode code_{};
};

}  // namespace arctrace
