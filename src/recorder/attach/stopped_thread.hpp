// A thread of another process that stands still for a short time, and runs functions of
// its own for us in between (ptrace).
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>
#include <sys/types.h>
#include <sys/user.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace arctrace {

// Its registers, signal mask and errno are as they were when the object is gone, and the
// system call that it was in is made again.
class StoppedThread {
 public:
  // Stops the thread. Error: it has ended, or may not be stopped.
  static absl::StatusOr<StoppedThread> stop(pid_t tid);
  StoppedThread(StoppedThread&& other) noexcept;
  StoppedThread& operator=(StoppedThread&&) = delete;
  StoppedThread(const StoppedThread&) = delete;
  StoppedThread& operator=(const StoppedThread&) = delete;
  ~StoppedThread();

  pid_t tid() const { return tid_; }
  const user_regs_struct& registers() const { return registers_; }
  // The number of the system call in which it was stopped; -1: it was in none.
  long system_call_number() const { return static_cast<long>(registers_.orig_rax); }

  // To be called once before the others: signals are kept from the thread from now on.
  // `instruction`: the address of a system call instruction.
  absl::Status borrow(uint64_t instruction);
  // Makes a system call; its result, which may be a negative error number.
  absl::StatusOr<int64_t> system_call(long number, const std::array<uint64_t, 6>& args);
  // Calls the function at `address`, on the stack that ends at `stack`. Error: a signal
  // came of it, or it did not return in 10 s.
  absl::StatusOr<uint64_t> call(uint64_t address, const std::array<uint64_t, 3>& args,
                                uint64_t stack);
  absl::Status write(uint64_t address, absl::Span<const char> bytes) const;
  absl::StatusOr<std::string> read_text(uint64_t address) const;  // up to 4095 bytes
  absl::StatusOr<int32_t> read_word(uint64_t address) const;

 private:
  explicit StoppedThread(pid_t tid) : tid_(tid) {}
  absl::Status run_to_system_call();
  absl::Status set(const user_regs_struct& registers) const;
  absl::Status lost() const;

  pid_t tid_;  // 0: moved from, or ended
  user_regs_struct registers_{};
  std::vector<char> vectors_;
  uint64_t signal_mask_ = 0;
  bool is_borrowed_ = false;
  uint64_t instruction_ = 0;
};

}  // namespace arctrace
