// The thread is seized, which sends it no signal. What it runs for us ends at a system
// call instruction, to which it returns: a stop that no signal is needed for, and the
// call is not made.
#include "src/recorder/attach/stopped_thread.hpp"

#include <absl/strings/str_cat.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

namespace arctrace {
namespace {

constexpr int kSystemCallStop = SIGTRAP | 0x80;
constexpr uint64_t kAllSignals = ~uint64_t{0};

// As the kernel has them: the call is made again, unless a handler runs first.
constexpr int64_t kRestartNoHandler = -514;

// System calls that end with EINTR when a thread is stopped, though no signal came.
bool is_ended_by_stop(long number) {
  switch (number) {
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_rt_sigtimedwait:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_connect:
    case SYS_accept:
    case SYS_accept4:
    case SYS_io_getevents:
    case SYS_io_pgetevents:
    case SYS_msgrcv:
    case SYS_msgsnd:
      return true;
    default:
      return false;
  }
}

bool is_event_stop(int status) { return status >> 16 == PTRACE_EVENT_STOP; }

// Waits for the thread's next stop; false: it has ended, or 10 s are over.
bool await_stop(pid_t tid, int& status) {
  constexpr auto kPatience = std::chrono::seconds(10);
  constexpr auto kPause = std::chrono::microseconds(50);
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    const pid_t stopped = waitpid(tid, &status, __WALL | WNOHANG);
    if (stopped == tid) return WIFSTOPPED(status);
    if (stopped < 0 && errno != EINTR) return false;
    if (std::chrono::steady_clock::now() - begin > kPatience) return false;
    std::this_thread::sleep_for(kPause);
  }
}

// Waits for a stop that is no signal's; these are passed on.
bool await_event(pid_t tid, int& status) {
  while (await_stop(tid, status)) {
    if (is_event_stop(status)) return true;
    if (ptrace(PTRACE_CONT, tid, nullptr, WSTOPSIG(status)) != 0) return false;
  }
  return false;
}

}  // namespace

absl::StatusOr<StoppedThread> StoppedThread::stop(pid_t tid) {
  if (ptrace(PTRACE_SEIZE, tid, nullptr, PTRACE_O_TRACESYSGOOD) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot stop thread ", tid));
  }
  StoppedThread thread(tid);
  int status = 0;
  if (ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr) != 0 || !await_event(tid, status) ||
      ptrace(PTRACE_GETREGS, tid, nullptr, &thread.registers_) != 0) {
    return thread.lost();
  }
  if (WSTOPSIG(status) != SIGTRAP) {
    return absl::UnavailableError("it is being stopped by a signal");
  }
  return thread;
}

StoppedThread::StoppedThread(StoppedThread&& other) noexcept
    : tid_(std::exchange(other.tid_, 0)),
      registers_(other.registers_),
      vectors_(std::move(other.vectors_)),
      signal_mask_(other.signal_mask_),
      is_borrowed_(other.is_borrowed_),
      instruction_(other.instruction_) {}

StoppedThread::~StoppedThread() {
  if (tid_ == 0) return;
  int status = 0;
  if (is_borrowed_) {
    // The kernel makes a system call again only where it looks for signals.
    ptrace(PTRACE_INTERRUPT, tid_, nullptr, nullptr);
    ptrace(PTRACE_CONT, tid_, nullptr, nullptr);
    await_event(tid_, status);
    iovec vectors{vectors_.data(), vectors_.size()};
    ptrace(PTRACE_SETREGSET, tid_, NT_X86_XSTATE, &vectors);
    ptrace(PTRACE_SETSIGMASK, tid_, sizeof signal_mask_, &signal_mask_);
  }
  user_regs_struct registers = registers_;
  if (static_cast<int64_t>(registers.rax) == -EINTR &&
      is_ended_by_stop(system_call_number())) {
    registers.rax = static_cast<uint64_t>(kRestartNoHandler);
  }
  ptrace(PTRACE_SETREGS, tid_, nullptr, &registers);
  ptrace(PTRACE_DETACH, tid_, nullptr, nullptr);
}

absl::Status StoppedThread::lost() const {
  return absl::AbortedError(absl::StrCat("thread ", tid_, " has ended"));
}

absl::Status StoppedThread::set(const user_regs_struct& registers) const {
  return ptrace(PTRACE_SETREGS, tid_, nullptr, &registers) == 0 ? absl::OkStatus()
                                                                : lost();
}

absl::Status StoppedThread::borrow(uint64_t instruction) {
  constexpr size_t kVectorsMax = size_t{1} << 14;
  instruction_ = instruction;
  vectors_.resize(kVectorsMax);
  iovec vectors{vectors_.data(), vectors_.size()};
  if (ptrace(PTRACE_GETREGSET, tid_, NT_X86_XSTATE, &vectors) != 0 ||
      ptrace(PTRACE_GETSIGMASK, tid_, sizeof signal_mask_, &signal_mask_) != 0 ||
      ptrace(PTRACE_SETSIGMASK, tid_, sizeof kAllSignals, &kAllSignals) != 0) {
    return lost();
  }
  vectors_.resize(vectors.iov_len);
  is_borrowed_ = true;
  return absl::OkStatus();
}

absl::Status StoppedThread::run_to_system_call() {
  int status = 0;
  if (ptrace(PTRACE_SYSCALL, tid_, nullptr, nullptr) != 0 || !await_stop(tid_, status)) {
    return absl::DeadlineExceededError(
        absl::StrCat("thread ", tid_, " has ended or does not go on"));
  }
  if (WSTOPSIG(status) == kSystemCallStop) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat("signal ", WSTOPSIG(status), " came of a call in thread ", tid_));
}

absl::StatusOr<int64_t> StoppedThread::system_call(long number,
                                                   const std::array<uint64_t, 6>& args) {
  user_regs_struct registers = registers_;
  registers.rip = instruction_;
  registers.rax = static_cast<uint64_t>(number);
  registers.orig_rax = static_cast<uint64_t>(-1);
  registers.rdi = args[0];
  registers.rsi = args[1];
  registers.rdx = args[2];
  registers.r10 = args[3];
  registers.r8 = args[4];
  registers.r9 = args[5];
  absl::Status status = set(registers);
  if (status.ok()) status = run_to_system_call();  // its entry
  if (status.ok()) status = run_to_system_call();  // its exit
  if (!status.ok()) return status;
  if (ptrace(PTRACE_GETREGS, tid_, nullptr, &registers) != 0) return lost();
  return static_cast<int64_t>(registers.rax);
}

absl::StatusOr<uint64_t> StoppedThread::call(uint64_t address,
                                             const std::array<uint64_t, 3>& args,
                                             uint64_t stack) {
  constexpr uint64_t kInstructionSize = 2;
  constexpr uint64_t kDirectionFlag = 0x400;
  const uint64_t slot = (stack & ~uint64_t{15}) - 8;  // of the return address
  std::array<char, 8> to{};
  std::memcpy(to.data(), &instruction_, to.size());
  if (absl::Status written = write(slot, to); !written.ok()) return written;
  user_regs_struct registers = registers_;
  registers.rip = address;
  registers.rsp = slot;
  registers.rax = 0;
  registers.orig_rax = static_cast<uint64_t>(-1);
  registers.eflags &= ~kDirectionFlag;
  registers.rdi = args[0];
  registers.rsi = args[1];
  registers.rdx = args[2];
  if (absl::Status status = set(registers); !status.ok()) return status;
  for (;;) {
    if (absl::Status status = run_to_system_call(); !status.ok()) return status;
    if (ptrace(PTRACE_GETREGS, tid_, nullptr, &registers) != 0) return lost();
    if (registers.rip == instruction_ + kInstructionSize &&
        registers.rsp == slot + sizeof slot) {
      break;
    }
  }
  // It has returned, to make a system call with its result as the number: none is made.
  const uint64_t result = registers.orig_rax;
  registers.orig_rax = static_cast<uint64_t>(-1);
  absl::Status status = set(registers);
  if (status.ok()) status = run_to_system_call();
  if (!status.ok()) return status;
  return result;
}

absl::Status StoppedThread::write(uint64_t address, absl::Span<const char> bytes) const {
  iovec from{const_cast<char*>(bytes.data()), bytes.size()};
  iovec to{reinterpret_cast<void*>(address), bytes.size()};
  const ssize_t written = process_vm_writev(tid_, &from, 1, &to, 1, 0);
  if (written == static_cast<ssize_t>(bytes.size())) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "cannot write into the process");
}

absl::StatusOr<std::string> StoppedThread::read_text(uint64_t address) const {
  std::array<char, 4096> text{};
  // A page at most, so that a text that ends just before memory that is not mapped can be
  // read.
  const size_t size = text.size() - address % text.size();
  iovec to{text.data(), size - 1};
  iovec from{reinterpret_cast<void*>(address), size - 1};
  if (process_vm_readv(tid_, &to, 1, &from, 1, 0) <= 0) {
    return absl::ErrnoToStatus(errno, "cannot read from the process");
  }
  return std::string(text.data());
}

absl::StatusOr<int32_t> StoppedThread::read_word(uint64_t address) const {
  int32_t word = 0;
  iovec to{&word, sizeof word};
  iovec from{reinterpret_cast<void*>(address), sizeof word};
  if (process_vm_readv(tid_, &to, 1, &from, 1, 0) != sizeof word) {
    return absl::ErrnoToStatus(errno, "cannot read from the process");
  }
  return word;
}

}  // namespace arctrace
