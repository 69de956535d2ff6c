// Stops threads of a process, and changes the priorities of those that are involved.
#include "src/recorder/attach/stopped_threads.hpp"

#include <absl/status/status.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

namespace arctrace::recorder {

namespace {

sched_param lowest_real_time() {
  sched_param lowest{};
  lowest.sched_priority = 1;
  return lowest;
}

// The child's main function: it is told of each thread before the thread's priority
// changes. It makes system calls only, because other threads of the parent may have held
// locks.
[[noreturn]] void guard(int from_parent) {
  // Signals that end the parent must not end the child: neither a terminal's nor its own.
  setsid();
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  HurriedThread::Before before;
  ssize_t size = 0;
  while ((size = read(from_parent, &before, sizeof before)) == sizeof before ||
         (size < 0 && errno == EINTR)) {
  }
  if (before.tid != 0) sched_setscheduler(before.tid, before.policy, &before.parameters);
  _exit(0);
}

}  // namespace

RealTimePriority::RealTimePriority() {
  const sched_param lowest = lowest_real_time();
  has_changed_ = pthread_getschedparam(pthread_self(), &policy_, &before_) == 0 &&
                 pthread_setschedparam(pthread_self(), SCHED_FIFO, &lowest) == 0;
}

RealTimePriority::~RealTimePriority() {
  if (has_changed_) pthread_setschedparam(pthread_self(), policy_, &before_);
}

HurriedThread::HurriedThread(const RealTimePriority& own) {
  int ends[2];
  if (!own.was_had() || pipe2(ends, O_CLOEXEC) != 0) return;
  guard_ = fork();
  if (guard_ == 0) {
    close(ends[1]);
    guard(ends[0]);
  }
  close(ends[0]);
  to_guard_ = ends[1];
}

HurriedThread::~HurriedThread() {
  calm();
  if (to_guard_ >= 0) close(to_guard_);
  while (guard_ > 0 && waitpid(guard_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void HurriedThread::hurry(pid_t tid) {
  Before before;
  before.tid = tid;
  before.policy = sched_getscheduler(tid);
  const int policy = before.policy & ~SCHED_RESET_ON_FORK;
  if (guard_ < 0 ||
      (policy != SCHED_OTHER && policy != SCHED_BATCH && policy != SCHED_IDLE) ||
      sched_getparam(tid, &before.parameters) != 0 ||
      write(to_guard_, &before, sizeof before) != sizeof before) {
    return;
  }
  // A process that the thread starts meanwhile has the usual priority.
  const sched_param lowest = lowest_real_time();
  if (sched_setscheduler(tid, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest) == 0) {
    before_ = before;
  }
}

void HurriedThread::calm() {
  if (before_.tid == 0) return;
  sched_setscheduler(before_.tid, before_.policy, &before_.parameters);
  before_ = Before{};
}

namespace {

// The thread's state, as /proc has it: 'R', 'S', ...; 0: it is gone.
char state_of(pid_t pid, pid_t tid) {
  // Other threads are stopped while this reads.
  std::array<char, 256> text{};
  const int file = open(absl::StrCat("/proc/", pid, "/task/", tid, "/stat").c_str(),
                        O_RDONLY | O_CLOEXEC);
  if (file < 0) return '\0';
  const ssize_t size = read(file, text.data(), text.size());
  close(file);
  const std::string_view line(text.data(), size > 0 ? static_cast<size_t>(size) : 0);
  const size_t name_end = line.rfind(')');  // the name may hold anything
  return name_end == std::string_view::npos || name_end + 2 >= line.size()
             ? '\0'
             : line[name_end + 2];
}

bool has_ended(pid_t pid, pid_t tid) {
  const char state = state_of(pid, tid);
  return state == '\0' || state == 'Z' || state == 'X';
}

// Whether the kernel would not wake the thread for a stop. A parent that waits in vfork()
// until its child has gone on stays so for long, a thread that waits for memory only for
// moments.
bool is_uninterruptible(pid_t pid, pid_t tid) { return state_of(pid, tid) == 'D'; }

// Waits some ms until the thread can be stopped; false: it still can't be.
bool may_be_stopped(pid_t pid, pid_t tid) {
  constexpr int kTries = 20;
  constexpr auto kPause = std::chrono::microseconds(250);
  for (int i = 0; i < kTries; ++i) {
    if (!is_uninterruptible(pid, tid)) return true;
    std::this_thread::sleep_for(kPause);
  }
  return false;
}

// The threads that are not in `known`; adds them to it.
std::vector<pid_t> new_threads(pid_t pid, std::set<pid_t>& known) {
  namespace fs = std::filesystem;
  std::vector<pid_t> found;
  std::error_code error;
  fs::directory_iterator task(absl::StrCat("/proc/", pid, "/task"), error);
  for (; !error && task != fs::directory_iterator(); task.increment(error)) {
    pid_t tid = 0;
    if (!absl::SimpleAtoi(task->path().filename().native(), &tid)) continue;
    if (known.insert(tid).second && !has_ended(pid, tid)) found.push_back(tid);
  }
  return found;
}

bool contains(const std::vector<CodeMemory>& code, uint64_t address) {
  return std::any_of(code.begin(), code.end(), [address](const CodeMemory& range) {
    return address >= range.low && address < range.high;
  });
}

// Lets one thread that stands in the code run until it has left it.
absl::Status run_out_of(const std::vector<CodeMemory>& code, StoppedThread& thread) {
  constexpr int kTries = 100;
  constexpr auto kTime = std::chrono::microseconds(20);
  for (int i = 0; contains(code, thread.program_counter()); ++i) {
    if (i == kTries) {
      return absl::UnavailableError(
          absl::StrCat("thread ", thread.tid(), " stays in arctrace's code"));
    }
    if (absl::Status status = thread.run_for(kTime); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// A thread that ends is no reason to give up: the next attempt stops the remaining ones.
absl::Status unless_ended(const absl::Status& status) {
  return absl::IsAborted(status) ? absl::UnavailableError(status.message()) : status;
}

}  // namespace

absl::Status StoppedThreads::stop_these(pid_t pid, const std::vector<pid_t>& tids,
                                        HurriedThread& hurried) {
  const auto unavailable = [](pid_t tid) {
    return absl::UnavailableError(
        absl::StrCat("thread ", tid, " waits where it cannot be stopped; try again"));
  };
  // This waits before any thread is stopped, so that no thread is stopped while others
  // are waited for.
  for (const pid_t tid : tids) {
    if (!may_be_stopped(pid, tid)) return unavailable(tid);
  }
  if (threads_.empty()) since_ = std::chrono::steady_clock::now();
  std::vector<StoppedThread> asked;
  for (const pid_t tid : tids) {
    if (is_uninterruptible(pid, tid)) return unavailable(tid);
    absl::StatusOr<StoppedThread> thread = StoppedThread::ask_to_stop(tid);
    if (thread.ok()) {
      asked.push_back(*std::move(thread));
    } else if (!has_ended(pid, tid)) {
      return thread.status();
    }
  }
  for (StoppedThread& thread : asked) {
    if (!thread.has_stopped()) hurried.hurry(thread.tid());
    absl::Status status = thread.await_stop();
    hurried.calm();
    if (status.ok()) {
      threads_.push_back(std::move(thread));
    } else if (!has_ended(pid, thread.tid())) {
      return unless_ended(status);  // it is about to end
    }
  }
  return absl::OkStatus();
}

absl::Status StoppedThreads::stop_all_but(pid_t pid, pid_t running,
                                          HurriedThread& hurried) {
  std::set<pid_t> known{running};
  for (;;) {
    const std::vector<pid_t> begun = new_threads(pid, known);
    if (begun.empty()) return absl::OkStatus();
    absl::Status status = stop_these(pid, begun, hurried);
    if (!status.ok()) return status;
  }
}

absl::Status StoppedThreads::leave_code(const std::vector<CodeMemory>& code,
                                        HurriedThread& hurried) {
  for (StoppedThread& thread : threads_) {
    if (!contains(code, thread.program_counter())) continue;
    hurried.hurry(thread.tid());
    absl::Status status = run_out_of(code, thread);
    hurried.calm();
    if (!status.ok()) return unless_ended(status);
  }
  return absl::OkStatus();
}

}  // namespace arctrace::recorder
