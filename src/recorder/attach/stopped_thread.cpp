// The thread is seized, which sends it no signal. The function that it runs for us
// returns to a system call, before which the thread stops without a signal, and which is
// not made. At each stop the stack is such that the thread would return to where it was:
// see ReturnFrame. If all threads of the process are stopped meanwhile (SIGSTOP, Ctrl-Z),
// this one goes on until it has returned, because it may hold the loader's lock; the
// kernel stops it, too, when it is released.
#include "src/recorder/attach/stopped_thread.hpp"

#include <absl/strings/str_cat.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <thread>
#include <utility>

namespace arctrace::recorder {

// ReturnFrame: the frame is as the kernel makes it for a handler
// (arch/x86/kernel/signal_64.c), after a word that points to it.

namespace {

// The kernel's struct ucontext.
struct SignalContext {
  uint64_t flags;
  uint64_t link;
  uint64_t stack;
  uint32_t stack_flags;
  uint32_t pad;
  uint64_t stack_size;
  uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
  uint64_t rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip;
  uint64_t eflags;
  uint16_t cs, gs, fs, ss;
  uint64_t error, trap, old_mask, fault;
  uint64_t vectors;  // address, a multiple of 64; 0: none
  uint64_t reserved[8];
  uint64_t signal_mask;
};
static_assert(offsetof(SignalContext, signal_mask) == 296);

constexpr uint64_t kHasVectors = 1;
constexpr uint64_t kHasStackSegment = 2;
constexpr uint64_t kStrictStackSegment = 4;
// This is no kind of signal stack, so the thread's own stays as it is.
constexpr uint32_t kNoStack = 0x40;

// The mark in bytes of the vector state that hardware does not use.
struct VectorsMark {
  uint32_t magic;
  uint32_t extended_size;
  uint64_t features;
  uint32_t size;
  uint32_t pad[7];
};
constexpr size_t kMarkAt = 464;
constexpr uint32_t kMagic = 0x46505853;
constexpr uint32_t kEndMagic = 0x46505845;

// Whether the registers are those of a system call that a stop has interrupted: it is
// made again.
bool is_interrupted(const user_regs_struct& registers) {
  constexpr int64_t kRestartMin = -516;
  constexpr int64_t kRestartMax = -512;
  const auto result = static_cast<int64_t>(registers.rax);
  return static_cast<int64_t>(registers.orig_rax) >= 0 &&
         ((result >= kRestartMin && result <= kRestartMax) || result == -EINTR);
}

SignalContext context_of(const StoppedState& state) {
  constexpr uint64_t kSystemCallSize = 2;
  const user_regs_struct& r = state.registers;
  SignalContext context{};
  context.flags = kHasVectors | kHasStackSegment | kStrictStackSegment;
  context.stack_flags = kNoStack;
  context.r8 = r.r8, context.r9 = r.r9, context.r10 = r.r10, context.r11 = r.r11;
  context.r12 = r.r12, context.r13 = r.r13, context.r14 = r.r14, context.r15 = r.r15;
  context.rdi = r.rdi, context.rsi = r.rsi, context.rbp = r.rbp, context.rbx = r.rbx;
  context.rdx = r.rdx, context.rax = r.rax, context.rcx = r.rcx, context.rsp = r.rsp;
  context.rip = r.rip, context.eflags = r.eflags;
  context.cs = static_cast<uint16_t>(r.cs), context.ss = static_cast<uint16_t>(r.ss);
  context.signal_mask = state.signal_mask;
  if (is_interrupted(r)) {
    context.rax = r.orig_rax;
    context.rip -= kSystemCallSize;
  }
  return context;
}

template <class T>
void put(std::string& bytes, size_t at, const T& value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

constexpr int kSystemCallStop = SIGTRAP | 0x80;
// All signals but those that a thread's own instructions raise, which cannot wait.
constexpr uint64_t bit(int signal) { return uint64_t{1} << (signal - 1); }
constexpr uint64_t kBlockedSignals = ~(bit(SIGSEGV) | bit(SIGBUS) | bit(SIGILL) |
                                       bit(SIGFPE) | bit(SIGTRAP) | bit(SIGSYS));

// The kernel's numbers: the call is made again, unless a handler runs first.
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

constexpr uint64_t kNoSystemCall = ~uint64_t{0};

// The end of the stack that the interrupted function does not use, below its red zone.
uint64_t own_stack_end(const StoppedState& state) {
  constexpr uint64_t kRedZone = 128;
  return state.registers.rsp - kRedZone;
}

bool is_event_stop(int status) { return status >> 16 == PTRACE_EVENT_STOP; }

// The most that a thread is kept from its own work: no step begins later.
constexpr auto kBorrowedMax = std::chrono::seconds(10);
// What the calls of a step that has begun have at least, each.
constexpr auto kCallMin = std::chrono::seconds(1);

using Time = std::chrono::steady_clock::time_point;

// Waits for the thread's next stop; false: it has ended, or did not stop until then.
bool await_any_stop(pid_t tid, int& status, Time until) {
  // Most stops come at once, a hundred of them while the thread joins.
  constexpr auto kImpatience = std::chrono::microseconds(200);
  constexpr auto kPause = std::chrono::microseconds(50);
  const Time begin = std::chrono::steady_clock::now();
  for (;;) {
    const pid_t stopped = waitpid(tid, &status, __WALL | WNOHANG);
    if (stopped == tid) return WIFSTOPPED(status);
    if (stopped < 0 && errno != EINTR) return false;
    const Time now = std::chrono::steady_clock::now();
    if (now > until) return false;
    if (now - begin < kImpatience) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kPause);
    }
  }
}

// Waits for a stop that is neither for a signal, which is delivered, nor for a system
// call. Such a stop takes the place of the one that was asked for, so that one is asked
// for again.
bool await_event(pid_t tid, int& status) {
  constexpr auto kPatience = std::chrono::seconds(10);
  const Time until = std::chrono::steady_clock::now() + kPatience;
  while (await_any_stop(tid, status, until)) {
    if (is_event_stop(status)) return true;
    const int signal = WSTOPSIG(status) == kSystemCallStop ? 0 : WSTOPSIG(status);
    if (ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr) != 0 ||
        ptrace(PTRACE_CONT, tid, nullptr, signal) != 0) {
      return false;
    }
  }
  return false;
}

}  // namespace

ReturnFrame make_return_frame(const StoppedState& state, const ReturnCode& code,
                              uint64_t end) {
  constexpr uint64_t kVectorsAlign = 64;
  constexpr uint64_t kStackAlign = 16;
  const uint64_t vectors_size = state.vectors.size() + sizeof kEndMagic;
  const uint64_t vectors = (end - vectors_size) & ~(kVectorsAlign - 1);
  // Two return addresses stand before the context.
  const uint64_t slot =
      ((vectors - sizeof(SignalContext) - 2 * sizeof(uint64_t)) & ~(kStackAlign - 1)) -
      sizeof(uint64_t);
  ReturnFrame frame{slot, std::string(vectors + vectors_size - slot, '\0')};
  SignalContext context = context_of(state);
  context.vectors = vectors;
  put(frame.bytes, 0, code.system_call);
  put(frame.bytes, sizeof(uint64_t), code.signal_return);
  put(frame.bytes, 2 * sizeof(uint64_t), context);
  const size_t at = vectors - slot;
  std::copy(state.vectors.begin(), state.vectors.end(),
            frame.bytes.begin() + static_cast<ptrdiff_t>(at));
  VectorsMark mark{};
  std::memcpy(&mark.features, state.vectors.data() + kMarkAt, sizeof mark.features);
  mark.magic = kMagic;
  mark.size = static_cast<uint32_t>(state.vectors.size());
  mark.extended_size = static_cast<uint32_t>(vectors_size);
  put(frame.bytes, at + kMarkAt, mark);
  put(frame.bytes, at + state.vectors.size(), kEndMagic);
  return frame;
}

absl::StatusOr<StoppedThread> StoppedThread::ask_to_stop(pid_t tid) {
  if (ptrace(PTRACE_SEIZE, tid, nullptr, PTRACE_O_TRACESYSGOOD) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot stop thread ", tid));
  }
  StoppedThread thread(tid);
  if (ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr) != 0) return thread.lost();
  thread.is_asked_ = true;
  return thread;
}

bool StoppedThread::has_stopped() const {
  siginfo_t information{};
  return waitid(P_PID, static_cast<id_t>(tid_), &information,
                WSTOPPED | WNOHANG | WNOWAIT | __WALL) == 0 &&
         information.si_pid == tid_;
}

absl::Status StoppedThread::await_stop() {
  int status = 0;
  is_asked_ = false;
  if (!await_event(tid_, status) ||
      ptrace(PTRACE_GETREGS, tid_, nullptr, &state_.registers) != 0) {
    return lost();
  }
  are_all_stopped_ = WSTOPSIG(status) != SIGTRAP;
  user_regs_struct& registers = state_.registers;
  if (static_cast<int64_t>(registers.rax) == -EINTR &&
      is_ended_by_stop(system_call_number())) {
    registers.rax = static_cast<uint64_t>(kRestartNoHandler);
    if (absl::Status set_again = set(registers); !set_again.ok()) return set_again;
  }
  return absl::OkStatus();
}

absl::Status StoppedThread::run_for(std::chrono::microseconds time) {
  if (ptrace(PTRACE_CONT, tid_, nullptr, nullptr) != 0) return lost();
  std::this_thread::sleep_for(time);
  if (ptrace(PTRACE_INTERRUPT, tid_, nullptr, nullptr) != 0) return lost();
  return await_stop();
}

StoppedThread::StoppedThread(StoppedThread&& other) noexcept
    : tid_(std::exchange(other.tid_, 0)),
      stopped_at_(other.stopped_at_),
      state_(std::move(other.state_)),
      is_asked_(other.is_asked_),
      is_borrowed_(other.is_borrowed_),
      is_running_(other.is_running_),
      are_all_stopped_(other.are_all_stopped_),
      code_(other.code_) {}

StoppedThread::~StoppedThread() {
  if (tid_ == 0) return;
  // A thread that has not stopped can't be detached, and could not be stopped again.
  if (is_asked_ && !await_stop().ok()) return;
  int status = 0;
  if (is_running_) {
    ptrace(PTRACE_INTERRUPT, tid_, nullptr, nullptr);
    if (!await_event(tid_, status)) return;
  } else if (is_borrowed_) {
    // The kernel makes a system call again only where it checks for signals.
    ptrace(PTRACE_INTERRUPT, tid_, nullptr, nullptr);
    ptrace(PTRACE_CONT, tid_, nullptr, nullptr);
    await_event(tid_, status);
    iovec vectors{state_.vectors.data(), state_.vectors.size()};
    ptrace(PTRACE_SETREGSET, tid_, NT_X86_XSTATE, &vectors);
    ptrace(PTRACE_SETSIGMASK, tid_, sizeof state_.signal_mask, &state_.signal_mask);
    ptrace(PTRACE_SETREGS, tid_, nullptr, &state_.registers);
  }
  ptrace(PTRACE_DETACH, tid_, nullptr, nullptr);
}

absl::Status StoppedThread::lost() const {
  return absl::AbortedError(absl::StrCat("thread ", tid_, " has ended"));
}

absl::Status StoppedThread::set(const user_regs_struct& registers) const {
  return ptrace(PTRACE_SETREGS, tid_, nullptr, &registers) == 0 ? absl::OkStatus()
                                                                : lost();
}

absl::Status StoppedThread::borrow(const ReturnCode& code) {
  constexpr size_t kVectorsMax = size_t{1} << 14;
  code_ = code;
  state_.vectors.resize(kVectorsMax);
  iovec vectors{state_.vectors.data(), state_.vectors.size()};
  if (ptrace(PTRACE_GETREGSET, tid_, NT_X86_XSTATE, &vectors) != 0 ||
      ptrace(PTRACE_GETSIGMASK, tid_, sizeof state_.signal_mask, &state_.signal_mask) !=
          0) {
    return lost();
  }
  state_.vectors.resize(vectors.iov_len);
  const ReturnFrame frame = make_return_frame(state_, code_, own_stack_end(state_));
  if (absl::Status written = write(frame.slot, frame.bytes); !written.ok())
    return written;
  user_regs_struct registers = state_.registers;
  registers.rip = code_.signal_return;
  registers.rsp = frame.slot + 2 * sizeof frame.slot;
  registers.orig_rax = kNoSystemCall;
  if (absl::Status status = set(registers); !status.ok()) return status;
  is_borrowed_ = true;
  if (ptrace(PTRACE_SETSIGMASK, tid_, sizeof kBlockedSignals, &kBlockedSignals) != 0) {
    return lost();
  }
  return absl::OkStatus();
}

absl::Status StoppedThread::check_time() const {
  if (std::chrono::steady_clock::now() < stopped_at_ + kBorrowedMax) {
    return absl::OkStatus();
  }
  return absl::DeadlineExceededError(absl::StrCat(
      "the CPUs are so busy that thread ", tid_, " was kept from its work for ",
      std::chrono::seconds(kBorrowedMax).count(),
      " s; run arctrace as root or with CAP_SYS_NICE, by which the thread has priority"));
}

absl::Status StoppedThread::run_to_system_call() {
  const Time until =
      std::max(stopped_at_ + kBorrowedMax, std::chrono::steady_clock::now() + kCallMin);
  int forwarded = 0;
  for (;;) {
    int status = 0;
    if (ptrace(PTRACE_SYSCALL, tid_, nullptr, forwarded) != 0) return lost();
    if (!await_any_stop(tid_, status, until)) {
      is_running_ = true;
      return absl::DeadlineExceededError(
          are_all_stopped_
              ? "it was stopped by a signal meanwhile; continue it (kill "
                "-CONT), and try again"
              : absl::StrCat("thread ", tid_,
                             " has ended, does not go on, or waits for a CPU"));
    }
    const int signal = WSTOPSIG(status);
    if (signal == kSystemCallStop) return absl::OkStatus();
    // All threads are to stop, or to go on. This one does not wait for either.
    if (!is_event_stop(status) && signal != SIGSTOP) {
      return absl::AbortedError(
          absl::StrCat("signal ", signal, " came of a call in thread ", tid_));
    }
    are_all_stopped_ = signal != SIGTRAP;
    forwarded = is_event_stop(status) ? 0 : signal;
  }
}

absl::StatusOr<uint64_t> StoppedThread::call(uint64_t address,
                                             const std::array<uint64_t, 6>& args,
                                             uint64_t stack) {
  constexpr uint64_t kInstructionSize = 2;
  constexpr uint64_t kDirectionFlag = 0x400;
  if (is_running_) {
    return absl::DeadlineExceededError(
        absl::StrCat("thread ", tid_, " has not returned from a call"));
  }
  const ReturnFrame frame =
      make_return_frame(state_, code_, stack != 0 ? stack : own_stack_end(state_));
  if (absl::Status written = write(frame.slot, frame.bytes); !written.ok())
    return written;
  user_regs_struct registers = state_.registers;
  registers.rip = address;
  registers.rsp = frame.slot;
  registers.rax = 0;
  registers.orig_rax = kNoSystemCall;
  registers.eflags &= ~kDirectionFlag;
  registers.rdi = args[0];
  registers.rsi = args[1];
  registers.rdx = args[2];
  registers.rcx = args[3];
  registers.r8 = args[4];
  registers.r9 = args[5];
  if (absl::Status status = set(registers); !status.ok()) return status;
  do {
    if (absl::Status status = run_to_system_call(); !status.ok()) return status;
    if (ptrace(PTRACE_GETREGS, tid_, nullptr, &registers) != 0) return lost();
  } while (registers.rip != code_.system_call + kInstructionSize ||
           registers.rsp != frame.slot + sizeof frame.slot);
  // The function has returned, to a system call with its result as the number: that call
  // is not made.
  const uint64_t result = registers.orig_rax;
  registers.orig_rax = kNoSystemCall;
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
  // At most a page is read at once, so that a text that ends just before unmapped memory
  // can be read.
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

}  // namespace arctrace::recorder
